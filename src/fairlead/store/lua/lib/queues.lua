-- Sub-queues: who stands in them, and what follows when a head changes.
--
-- USES     places books overlap waiting

local lanes, signatures, holds = hash(lanes_key), hash(signatures_key), hash(holds_key)
local AHEAD = -1 -- the tag of those that go ahead of all others of their place
local touched_subs, ages = {}, {}
local entered_subs = {} -- sub-queue -> tasks that entered it in this act

-- The tasks of a place by arrival.
local function age_of(place)
  local set = ages[place]
  if not set then
    set = ordered(age_key(place))
    ages[place] = set
  end
  return set
end

local function lane_name(place, t)
  return place .. ":" .. get(t, "type") .. ";" .. (get(t, "capabilities") or "")
end

local function sub_name(place, t)
  return lane_name(place, t) .. "|" .. (get(t, "limits") or "")
end

-- Is the task type of this lane (or sub-queue) paused?
local function is_paused(lane)
  if number(meta, "paused_types") == nil then return false end
  return get(hash(paused_key), string.match(lane, "^..:([^;]*);")) ~= nil
end

local function signature_of(sub)
  return string.sub(sub, 4)
end

local function end_hold(sub)
  if not get(holds, sub) then return end
  put(holds, sub, nil)
  stand_in_heads(sub)
  for _, need in ipairs(needs_of(sub)) do
    local limit = limit_of(need.name)
    if get(limit, "hold") == sub then
      put(limit, "hold", nil)
      put(limit, "hold_units", nil)
      touch_limit(need.name)
      freed_limits[need.name] = (freed_limits[need.name] or 0) + 1
    end
  end
  touched_subs[sub] = true
end

local function threshold(place)
  local after = place == "2n" and "low_to_medium" or place == "1n" and "medium_to_high" or place == "1p" and "low_to_high"
  local ms = after and setting(after) or 0
  return ms > 0 and ms or nil
end

-- Stands task `t` (a record) in `place` as (tag, seq); its other fields are set by the caller.
local function enqueue(t, place, tag, seq)
  local sub = sub_name(place, t)
  put(t, "place", place)
  put(t, "tag", tag)
  put(t, "seq", seq)
  insert(queue_of(sub), ticket(seq, t.id), tag)
  insert(age_of(place), t.id, number(t, "arrival"))
  count_waiting(t, 1, place)
  local after = threshold(place)
  if after then alarm_at(number(t, "arrival") + after) end
  touched_subs[sub] = true
  entered_subs[sub] = (entered_subs[sub] or 0) + 1
end

-- `starts_from`: the sub-queue of a task that is started.
local function dequeue(t, starts_from)
  local place = get(t, "place")
  local sub = starts_from or sub_name(place, t)
  if starts_from or get(holds, sub) == t.id then end_hold(sub) end
  remove(queue_of(sub), ticket(number(t, "seq"), t.id))
  remove(age_of(place), t.id)
  count_waiting(t, -1, place)
  touched_subs[sub] = true
  if standing_at(place) > 0 then return end
  local other = string.sub(place, 1, 1) .. (string.sub(place, 2) == "n" and "p" or "n")
  local shared = setting("budget") == 0
  if not shared or standing_at(other) == 0 then close_books(place) end
end

-- Where a task stands that comes to `place` anew: tag and seq.
local function next_stand(t, place)
  local cost = cost_of(get(t, "type"))
  put(t, "cost", cost)
  local tag = next_tag(place, get(t, "fair") or "", cost, number(t, "weight") or 1)
  if get(t, "ahead") then tag = AHEAD end -- charged like any other
  return tag, next_number("seq")
end

local function enter(t, place)
  enqueue(t, place, next_stand(t, place))
end

-- When may a sub-queue with this head ask for a hold? Only those with several slots limits ever do.
local function watch_patience(sub, head)
  local list = needs_of(sub)
  if #list < 2 then return end
  local arrival = number(hash(task_key(string.sub(head, 14))), "arrival")
  local promoted = string.sub(sub, 2, 2) == "p"
  add(ordered(patience_key), sub, arrival + (promoted and 0 or setting("hold_after")))
end

-- One that cannot start now is parked at once: a rate then knows when it is worth coming back.
local function right_stand(sub)
  local lacking = blocking(sub)
  return lacking and "p" .. lot_name(lacking, sub) or "h"
end

local function settle_sub(sub)
  local head, tag = first(queue_of(sub))
  local home = get(homes, sub)
  if not head then
    if home then
      stand(sub, nil)
      change_count(lanes, lane_of(sub), -1)
      change_count(signatures, signature_of(sub), -1)
      remove(ordered(patience_key), sub)
    end
    return
  end
  local seq = string.sub(head, 1, 13)
  if home and string.sub(home, 1, 13) == seq then return end
  if not home then
    change_count(lanes, lane_of(sub), 1)
    change_count(signatures, signature_of(sub), 1)
    remember_signature(sub)
  end
  stand(sub, right_stand(sub), seq, tag)
  watch_patience(sub, head)
end

-- Brings heads, lots and markers in line with what was queued, taken and freed so far in this act.
local function settle()
  local subs = touched_subs
  touched_subs = {}
  for sub in pairs(subs) do settle_sub(sub) end
  if next(touched_limits) or next(touched_lots) then settle_lots() end
end
