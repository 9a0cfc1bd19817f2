-- The hold rule: a task that needs several overlapping limits is not overtaken for ever (docs/scheduler.md, Hold).

local whole, get, number, put = hashes.whole, hashes.get, hashes.number, hashes.put
local ordered, first, up_to = sets.ordered, sets.first, sets.up_to

local HOLDS_PER_CLAIM = 32

-- Its slots limits that overlap with another of them.
local function hold_set(sub)
  local slots, set = {}, {}
  for _, need in ipairs(limits.needs_of(sub)) do
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

-- Could it start at all, once others have finished?
local function possible(sub)
  if queues.is_paused(sub) then return false end
  for _, need in ipairs(limits.needs_of(sub)) do
    local limit = limits.of(need.name)
    local most = number(limit, get(limit, "kind") == "rate" and "burst" or "limit")
    if get(limit, "paused") or most < need.units then return false end
  end
  return true
end

local function consider_hold(sub)
  if get(act.holds, sub) or not limits.blocking(sub) or not possible(sub) then return end
  local set = hold_set(sub)
  -- all or none: two tasks with a part of each other's holds would wait for ever
  for _, need in ipairs(set) do
    if get(limits.of(need.name), "hold") then return end
  end
  if #set == 0 then return end
  put(act.holds, sub, string.sub(first(limits.queue_of(sub)), 14))
  for _, need in ipairs(set) do
    local limit = limits.of(need.name)
    put(limit, "hold", sub)
    put(limit, "hold_units", need.units)
    limits.touch(need.name)
  end
  lots.stand_in_heads(sub) -- into its own lot when it is looked at next
end

function holds.make(now)
  for _, sub in ipairs(up_to(ordered(keys.patience), now, HOLDS_PER_CLAIM)) do
    consider_hold(sub)
    queues.settle()
  end
end

-- A limit was paused or made smaller, a type was paused: holds of those who can no longer start end.
function holds.end_impossible()
  local view = whole(keys.holds)
  for sub, owner in pairs(view and view.known or {}) do
    if owner and not possible(sub) then queues.end_hold(sub) end
  end
end
