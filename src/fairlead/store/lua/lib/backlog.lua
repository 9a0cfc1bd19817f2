-- Waiting tasks: every queued or delayed task is counted for its owner, and delayed tasks are kept here.

local QUEUED = {["0n"] = "queued_0n", ["0p"] = "queued_0p", ["1n"] = "queued_1n", ["1p"] = "queued_1p", ["2n"] = "queued_2n"}

-- The owner of a task as one text: a user within a tenant, or a tenant that names no users. nil without either.
function backlog.owner_of(tenant, user)
  if not tenant and not user then return nil end
  tenant, user = tenant or "", user or ""
  local users = act.owners[tenant]
  if not users then
    users = {}
    act.owners[tenant] = users
  end
  if not users[user] then users[user] = #tenant .. ":" .. tenant .. ":" .. user end
  return users[user]
end

-- The kinds of tasks that wait for a tenant: route -> how many.
function backlog.kinds_of(tenant)
  local kinds = act.kinds[tenant]
  if not kinds then
    kinds = hash(keys.kinds("=" .. tenant))
    act.kinds[tenant] = kinds
  end
  return kinds
end

-- How many are queued now: place -> count.
function backlog.queued()
  local counts = act.queued
  if not counts then
    counts = {}
    for place, field in pairs(QUEUED) do counts[place] = number(act.meta, field) or 0 end
    act.queued = counts
  end
  return counts
end

function backlog.queued_at(place)
  return backlog.queued()[place] or 0 -- no task is promoted to low
end

-- How many are queued with this effective priority.
function backlog.queued_in(class)
  local counts = backlog.queued()
  if class == 0 then return counts["0n"] + counts["0p"] end
  if class == 1 then return counts["1n"] + counts["1p"] end
  return counts["2n"]
end

function backlog.queued_in_all()
  local counts = backlog.queued()
  return counts["0n"] + counts["0p"] + counts["1n"] + counts["1p"] + counts["2n"]
end

-- Of a task that joins the queue: behind all of its effective priority and of better ones.
function backlog.next_position(class)
  local position = 1
  for better = 0, class do position = position + backlog.queued_in(better) end
  return position
end

-- One more task in a place, or one less.
function backlog.count_in(place, by)
  local counts = backlog.queued()
  local count = counts[place] + by
  counts[place] = count
  put(act.meta, QUEUED[place], count > 0 and count or nil)
end

-- Counted for its place (without one it is delayed), its owner, its tenant's kinds of tasks, and the limits it needs.
function backlog.count(t, by, place)
  local facts = t.known.facts
  if place then backlog.count_in(place, by) else change_count(act.meta, "delayed", by) end
  local owner = backlog.owner_of(facts.tenant, facts.user_id)
  if owner then change_count(hash(keys.waiting), owner, by) end
  change_count(backlog.kinds_of(facts.tenant or ""), subs.route_of(facts.type, facts.capabilities or ""), by)
  if facts.limits then limits.count(facts.limits, by, place and "waiting" or "delayed") end
end

function backlog.delayed()
  return number(act.meta, "delayed") or 0
end

-- The seq keeps the order of tasks that are due at the same instant.
function backlog.delay_until(t, instant)
  local seq = next_number("seq")
  put(t, "state", "delayed")
  put(t, "run_at", instant)
  put(t, "seq", seq)
  add(ordered(keys.delayed(t.known.facts.priority)), names.member(seq, t.id), instant)
  presence.enter(t, presence.DELAYED, instant)
  backlog.count(t, 1)
  start_at(instant)
end

function backlog.end_delay(t)
  remove(ordered(keys.delayed(t.known.facts.priority)), names.member(number(t, "seq"), t.id))
  presence.leave(t, presence.DELAYED)
  backlog.count(t, -1)
end
