-- The hold rule: a task that needs several overlapping limits is not overtaken for ever (docs/scheduler.md, Hold).
--
-- USES     queues

local HOLDS_PER_CLAIM = 32

-- Its slots limits that overlap with another of them.
local function hold_set(sub)
  local slots, set = {}, {}
  for _, need in ipairs(needs_of(sub)) do
    if get(limit_of(need.name), "kind") == "slots" then slots[#slots + 1] = need end
  end
  for _, need in ipairs(slots) do
    for _, other in ipairs(slots) do
      if need ~= other and overlap(need.name, other.name) then
        set[#set + 1] = need
        break
      end
    end
  end
  return set
end

-- Could it start at all, once others have finished?
local function possible(sub)
  if is_paused(sub) then return false end
  for _, need in ipairs(needs_of(sub)) do
    local limit = limit_of(need.name)
    local most = number(limit, get(limit, "kind") == "rate" and "burst" or "limit")
    if get(limit, "paused") or most < need.units then return false end
  end
  return true
end

local function consider_hold(sub)
  if get(holds, sub) or not blocking(sub) or not possible(sub) then return end
  local set = hold_set(sub)
  -- all or none: two tasks with a part of each other's holds would wait for ever
  for _, need in ipairs(set) do
    if get(limit_of(need.name), "hold") then return end
  end
  if #set == 0 then return end
  put(holds, sub, string.sub(first(queue_of(sub)), 14))
  for _, need in ipairs(set) do
    local limit = limit_of(need.name)
    put(limit, "hold", sub)
    put(limit, "hold_units", need.units)
    touch_limit(need.name)
  end
  stand_in_heads(sub) -- into its own lot when it is looked at next
end

local function make_holds(now)
  for _, sub in ipairs(up_to(ordered(patience_key), now, HOLDS_PER_CLAIM)) do
    consider_hold(sub)
    settle()
  end
end

-- A limit was paused or made smaller, a type was paused: holds of those who can no longer start end.
local function end_impossible_holds()
  local view = whole(holds_key)
  for sub, owner in pairs(view and view.known or {}) do
    if owner and not possible(sub) then end_hold(sub) end
  end
end
