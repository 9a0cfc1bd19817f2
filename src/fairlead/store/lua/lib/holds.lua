-- Holds: a task that needs several overlapping limits is not overtaken for ever (docs/scheduler.md, Hold).
--
-- A sub-queue of several slots limits, not only of tiers, is watched: in `patience` by the instant at which it may ask for a hold, if its limits
-- overlap; otherwise in `nested` by the number of the last change that was considered.

local ASK_AT_ONCE, CHECK_AT_ONCE = 8, 64
local MOST_HOLDS = 64

-- Its slots limits that overlap with another of them.
local function hold_set(sub)
  local slots, set = {}, {}
  for _, need in ipairs(subs.needs(sub)) do
    if get(limits.of(need.name), "kind") == "slots" then slots[#slots + 1] = need end
  end
  for _, need in ipairs(slots) do
    for _, other in ipairs(slots) do
      if need ~= other and overlap.between(need.name, other.name) then
        set[#set + 1] = need
        break
      end
    end
  end
  return set
end

local function overlap_changes()
  return act.counters.overlap_changes or number(act.meta, "overlap_changes") or 0
end

local function ask_at(sub, instant)
  remove(ordered(keys.nested), sub)
  add(ordered(keys.patience), sub, instant)
end

-- The sub-queue has a new head: note from when it may ask.
function holds.watch(sub, id)
  if not subs.may_overlap(sub) then return end
  if #hold_set(sub) == 0 then
    remove(ordered(keys.patience), sub)
    add(ordered(keys.nested), sub, overlap_changes())
    return
  end
  local arrival = number(hash(keys.task(id)), "arrival") or act.instant
  ask_at(sub, arrival + (string.sub(sub, 2, 2) == "p" and 0 or setting("hold_after")))
end

function holds.forget(sub)
  if not subs.may_overlap(sub) then return end
  remove(ordered(keys.patience), sub)
  remove(ordered(keys.nested), sub)
end

-- Since when, and for which task.
local function hold_of(sub)
  local since, id = string.match(get(hash(keys.holds), sub) or "", "^(%d+) (.*)$")
  return tonumber(since), id
end

-- The task that the hold was made for.
function holds.owner(sub)
  local _, id = hold_of(sub)
  return id
end

local function end_hold(sub)
  put(hash(keys.holds), sub, nil)
  lots.unpark(sub)
  for _, need in ipairs(subs.needs(sub)) do
    local limit = limits.of(need.name)
    if get(limit, "hold") == sub then
      put(limit, "hold", nil)
      put(limit, "hold_units", nil)
      limits.touch(need.name)
      limits.note_freed(need.name, need.units)
    end
  end
  act.touched_subs[sub] = act.touched_subs[sub] or true
end

-- A task leaves its sub-queue: any start, or the loss of the one it was made for, ends the hold.
function holds.left_by(sub, id, started)
  if not get(hash(keys.holds), sub) then return end
  local _, owner = hold_of(sub)
  if started or owner == id then end_hold(sub) end
end

-- Could it start once others have finished? Everything that it lacks must be in the set.
local function may_hold(sub, set)
  local held = {}
  for _, need in ipairs(set) do held[need.name] = true end
  if limits.is_paused_type(sub) or audiences.workers_for(subs.route(sub)) == 0 then return false end
  for _, need in ipairs(subs.needs(sub)) do
    local limit = limits.of(need.name)
    if get(limit, "paused") or limits.size_of(limit) < need.units then return false end
    local lacks = limits.room(limit, subs.class(sub), get(limit, "hold") == sub) < need.units
    if lacks and not held[need.name] then return false end
  end
  return true
end

-- Ends holds that no longer help, or have lasted long enough: the sub-queue may ask again after as long as the hold lasted.
function holds.review(now)
  if not get(act.meta, "wide_sub_queues") then return end
  local known = whole(keys.holds)
  for _, sub in ipairs(known and types.sorted_keys(known.known) or NONE) do
    local since = hold_of(sub)
    if since and (now - since >= setting("hold_for") or not may_hold(sub, hold_set(sub))) then
      end_hold(sub)
      ask_at(sub, now + math.max(setting("hold_after"), now - since, 1000))
      queues.reindex()
    end
  end
end

local function count_holds()
  local count, known = 0, whole(keys.holds)
  for _, hold in pairs(known and known.known or NONE) do count = count + (hold and 1 or 0) end
  return count
end

-- All limits of its set or none: two tasks that each hold a part would wait for each other for ever.
local function may_take(sub, set)
  if get(hash(keys.holds), sub) or #set == 0 or count_holds() >= MOST_HOLDS then return false end
  for _, need in ipairs(set) do
    if get(limits.of(need.name), "hold") then return false end
  end
  return limits.blocking(sub) and may_hold(sub, set)
end

local function consider(sub, now)
  local set = hold_set(sub)
  ask_at(sub, now + math.max(setting("hold_after"), 1000)) -- whatever the result: the next one is considered
  if not may_take(sub, set) then return end
  put(hash(keys.holds), sub, string.format("%d ", now) .. names.about(first(subs.queue(sub))))
  for _, need in ipairs(set) do
    local limit = limits.of(need.name)
    put(limit, "hold", sub)
    put(limit, "hold_units", need.units)
    limits.touch(need.name)
  end
  lots.unpark(sub) -- into its own lot when it is looked at next
end

-- Sub-queues that were nested when they were last looked at, and may not be any more.
local function check_nested()
  local changes = overlap_changes()
  for _, sub in ipairs(up_to(ordered(keys.nested), changes - 1, CHECK_AT_ONCE)) do
    holds.watch(sub, names.about(first(subs.queue(sub))))
  end
end

-- Does a claim have to make or review holds before it chooses?
function holds.are_due(now)
  if not get(act.meta, "wide_sub_queues") then return false end
  local _, asks = first(ordered(keys.patience))
  local _, checked = first(ordered(keys.nested))
  return asks and asks <= now or checked and checked < overlap_changes() or whole(keys.holds) ~= nil
end

function holds.make(now)
  if not get(act.meta, "wide_sub_queues") then return end -- no waiting task needs several limits
  holds.review(now)
  check_nested()
  for _, sub in ipairs(up_to(ordered(keys.patience), now, ASK_AT_ONCE)) do
    consider(sub, now)
    queues.reindex()
  end
end
