-- Who waits: every task that is queued or delayed is counted for its owner, and the delayed ones are kept here.

local hash, number, put, change_count = hashes.hash, hashes.number, hashes.put, hashes.change_count
local ordered, remove, add = sets.ordered, sets.remove, sets.add
local next_number, start_at = acts.next_number, acts.start_at

-- Whose task it is, as one text: a user within a tenant, or a tenant that names no users. nil when nobody is named.
function backlog.owner_of(tenant, user)
  if not tenant and not user then return nil end
  return #(tenant or "") .. ":" .. (tenant or "") .. ":" .. (user or "")
end

-- How many are queued in a place now.
function backlog.standing_at(place)
  return number(act.meta, "queued_" .. place) or 0
end

-- Counted for its place (without one it is delayed), its owner, its tenant's kinds of tasks, and the limits it needs.
function backlog.count(t, by, place)
  local known = t.known
  change_count(act.meta, place and "queued_" .. place or "delayed", by)
  local owner = backlog.owner_of(known.tenant, known.user_id)
  if owner then change_count(hash(keys.waiting), owner, by) end
  change_count(hash(keys.kinds("=" .. (known.tenant or ""))), names.route(known.type, known.capabilities or ""), by)
  if known.limits then limits.count(known.limits, by, place and "waiting" or "delayed") end
end

function backlog.delayed()
  return number(act.meta, "delayed") or 0
end

-- Its number keeps the order of those that are due at the same instant.
function backlog.delay_until(t, instant)
  local seq = next_number("seq")
  put(t, "state", "delayed")
  put(t, "run_at", instant)
  put(t, "seq", seq)
  add(ordered(keys.delayed(t.known.priority)), names.member(seq, t.id), instant)
  backlog.count(t, 1)
  start_at(instant)
end

function backlog.end_delay(t)
  remove(ordered(keys.delayed(t.known.priority)), names.member(number(t, "seq"), t.id))
  backlog.count(t, -1)
end
