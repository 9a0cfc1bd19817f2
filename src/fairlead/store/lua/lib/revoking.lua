-- Revoking: taking back what a run may lose. An elastic run loses units of longer tiers and so becomes shorter; a session is halted.
--
-- The units are free when the worker confirms, or the lease ends. Until then the waiting task that they are for, named in `relief`, is
-- given no others.

local MOST_SESSIONS = 16
local ANNOUNCE_EVERY = 2000 -- ms
local KEPT = {[0] = "kept0", "kept1", "kept2"} -- limits.kept

local HALTED = {code = "HALTED", message = "a waiting task needed the slot of this interactive session"}

-- Revocations under way for a waiting task.
function revoking.is_under_way(id)
  return get(hash(keys.relief), id) ~= nil
end

-- Its slot is kept meanwhile: a unit of the shortest tier.
local function keep_slot(class, by)
  local shortest = tiers.all()[1]
  if not shortest then return end
  change_count(limits.of(shortest.limit), KEPT[class], by)
  limits.touch(shortest.limit)
  limits.note_freed(shortest.limit, -by)
end

-- What is taken back from `t` is for this head.
function revoking.begin_for(t, head)
  put(t, "relieves", head.id .. ":" .. int(head.class))
  if change_count(hash(keys.relief), head.id, 1) == 1 then keep_slot(head.class, 1) end
end

-- What was taken back from `t` is free.
function revoking.end_for(t)
  local known = get(t, "relieves")
  if not known then return end
  put(t, "relieves", nil)
  local id, class = string.match(known, "^(.*):(%d)$")
  if change_count(hash(keys.relief), id, -1) == 0 then keep_slot(tonumber(class), -1) end
end

-- Its worker learns of the deadline, and confirms it.
local function announce(t)
  put(t, "announced", act.instant)
  local left = math.max(0, number(t, "deadline") - act.instant)
  workers.call(t.known.worker, table.concat({"deadline", t.id, int(number(t, "fence")), int(left)}, ":"))
end

-- The call was lost, or the worker could not confirm. It is repeated with a heartbeat, and makes the worker send one: so not at once.
function revoking.announce_again(t)
  if get(t, "revoked") and act.instant - number(t, "announced") >= ANNOUNCE_EVERY then announce(t) end
end

-- Shortens an elastic run to tier `to`. Its units stay taken until its worker knows.
function revoking.shorten(t, to, reason)
  local all, now = tiers.all(), act.instant
  local from = all[get(t, "tier")]
  tiers.withdraw(t)
  put(t, "optional", to.optional)
  put(t, "revoked", tiers.units_between(to.index, from.index))
  tiers.note_change(t, to, now, reason)
  tiers.bound(t, to)
  local deadline = number(t, "deadline")
  events.add(t, "shorten", "executing", "executing", now, {
    tier = to.name, reason = reason, deadline = deadline, worker = t.known.worker,
  })
  announce(t)
end

function revoking.halt(t)
  endings.set_error(t, HALTED, false)
  cancels.cancel(t, act.instant)
end

-- Of the elastic runs that hold a unit of `tier`: the youngest, or any.
function revoking.victim(tier)
  local all, best, least, any = tiers.all(), nil, nil, {}
  for i = tier.index, #all do
    local set = ordered(keys.elastic(all[i].name))
    if setting("victim_random") == 1 then
      for _, id in ipairs(members(set)) do any[#any + 1] = id end
    else
      local id, age = first(set)
      if id and (not best or age < least) then best, least = id, age end
    end
  end
  if #any > 0 then
    table.sort(any)
    best = any[act.micros % #any + 1]
  end
  return best and records.find(best)
end

-- The index of the longest tier that an elastic run could give back; 0: there is none.
function revoking.longest()
  local all = tiers.all()
  for i = #all, 2, -1 do
    if has_members(ordered(keys.elastic(all[i].name))) then return i end
  end
  return 0
end

-- Sessions in the order in which they are halted.
function revoking.longest_idle()
  return up_to(ordered(keys.sessions), math.huge, MOST_SESSIONS)
end

-- The first of them whose worker `serves`.
function revoking.session_for(serves)
  for _, id in ipairs(revoking.longest_idle()) do
    local t = records.find(id)
    local me = t and not t.known.stopping and workers.record(t.known.worker)
    if me and get(me, "profile") and serves(me) then return t end
  end
end

-- An interactive task was refused: the longest elastic run becomes shorter by one tier.
function revoking.press()
  local all = tiers.all()
  for i = #all, 2, -1 do
    local found = first(ordered(keys.elastic(all[i].name)))
    local t = found and records.find(found)
    if t then return revoking.shorten(t, all[i - 1], "an interactive task found no free slot") end
  end
end
