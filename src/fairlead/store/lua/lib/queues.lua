-- Sub-queues: who stands in them, and what follows when a head changes.

local hash, get, number, put, change_count = hashes.hash, hashes.get, hashes.number, hashes.put, hashes.change_count
local ordered, remove, insert, add, first = sets.ordered, sets.remove, sets.insert, sets.add, sets.first
local setting, next_number, alarm_at = acts.setting, acts.next_number, acts.alarm_at


-- The tasks of a place by arrival.
function queues.age_of(place)
  local set = act.ages[place]
  if not set then
    set = ordered(keys.age(place))
    act.ages[place] = set
  end
  return set
end

function queues.lane_name(place, t)
  return place .. ":" .. get(t, "type") .. ";" .. (get(t, "capabilities") or "")
end

function queues.sub_name(place, t)
  return queues.lane_name(place, t) .. "|" .. (get(t, "limits") or "")
end

-- Is the task type of this lane (or sub-queue) paused?
function queues.is_paused(lane)
  if number(act.meta, "paused_types") == nil then return false end
  return get(hash(keys.paused), string.match(lane, "^..:([^;]*);")) ~= nil
end

local function signature_of(sub)
  return string.sub(sub, 4)
end

function queues.end_hold(sub)
  if not get(act.holds, sub) then return end
  put(act.holds, sub, nil)
  lots.stand_in_heads(sub)
  for _, need in ipairs(limits.needs_of(sub)) do
    local limit = limits.of(need.name)
    if get(limit, "hold") == sub then
      put(limit, "hold", nil)
      put(limit, "hold_units", nil)
      limits.touch(need.name)
      act.freed_limits[need.name] = (act.freed_limits[need.name] or 0) + 1
    end
  end
  act.touched_subs[sub] = true
end

function queues.threshold(place)
  local after = place == "2n" and "low_to_medium" or place == "1n" and "medium_to_high" or place == "1p" and "low_to_high"
  local ms = after and setting(after) or 0
  return ms > 0 and ms or nil
end

-- Stands task `t` (a record) in `place` as (tag, seq); its other fields are set by the caller.
function queues.enqueue(t, place, tag, seq)
  local sub = queues.sub_name(place, t)
  put(t, "place", place)
  put(t, "tag", tag)
  put(t, "seq", seq)
  insert(limits.queue_of(sub), lots.ticket(seq, t.id), tag)
  insert(queues.age_of(place), t.id, number(t, "arrival"))
  backlog.count_waiting(t, 1, place)
  local after = queues.threshold(place)
  if after then alarm_at(number(t, "arrival") + after) end
  act.touched_subs[sub] = true
  act.entered_subs[sub] = (act.entered_subs[sub] or 0) + 1
end

-- `starts_from`: the sub-queue of a task that is started.
function queues.dequeue(t, starts_from)
  local place = get(t, "place")
  local sub = starts_from or queues.sub_name(place, t)
  if starts_from or get(act.holds, sub) == t.id then queues.end_hold(sub) end
  remove(limits.queue_of(sub), lots.ticket(number(t, "seq"), t.id))
  remove(queues.age_of(place), t.id)
  backlog.count_waiting(t, -1, place)
  act.touched_subs[sub] = true
  if backlog.standing_at(place) > 0 then return end
  local other = string.sub(place, 1, 1) .. (string.sub(place, 2) == "n" and "p" or "n")
  local shared = setting("budget") == 0
  if not shared or backlog.standing_at(other) == 0 then fair_share.run_dry(place) end
end

-- The tag and the seq of a task that joins `place`. Those of a step were reserved when its job was submitted.
function queues.next_position(t, place)
  local account, reserved = get(t, "fair") or "", number(t, "reserved")
  if reserved and place == get(t, "priority") .. "n" then
    return fair_share.reserved_tag(place, reserved), number(t, "reserved_seq")
  end
  return fair_share.reserve(place, account, fair_share.stride(account, number(t, "weight") or 1), 1), next_number("seq")
end

function queues.enter(t, place)
  queues.enqueue(t, place, queues.next_position(t, place))
end

-- When may a sub-queue with this head ask for a hold? Only those with several slots limits ever do.
local function watch_patience(sub, head)
  local list = limits.needs_of(sub)
  if #list < 2 then return end
  local arrival = number(hash(keys.task(string.sub(head, 14))), "arrival")
  local promoted = string.sub(sub, 2, 2) == "p"
  add(ordered(keys.patience), sub, arrival + (promoted and 0 or setting("hold_after")))
end

-- One that cannot start now is parked at once: a rate then knows when it is worth coming back.
local function right_stand(sub)
  local lacking = limits.blocking(sub)
  return lacking and "p" .. lots.lot_name(lacking, sub) or "h"
end

local function settle_sub(sub)
  local head, tag = first(limits.queue_of(sub))
  local home = get(act.homes, sub)
  if not head then
    if home then
      lots.stand(sub, nil)
      change_count(act.lanes, limits.lane_of(sub), -1)
      change_count(act.signatures, signature_of(sub), -1)
      remove(ordered(keys.patience), sub)
    end
    return
  end
  local seq = string.sub(head, 1, 13)
  if home and string.sub(home, 1, 13) == seq then return end
  if not home then
    change_count(act.lanes, limits.lane_of(sub), 1)
    change_count(act.signatures, signature_of(sub), 1)
    overlap.remember(sub)
  end
  lots.stand(sub, right_stand(sub), seq, tag)
  watch_patience(sub, head)
end

-- Brings heads, lots and markers in line with what was queued, taken and freed so far in this act.
function queues.settle()
  local subs = act.touched_subs
  act.touched_subs = {}
  for sub in pairs(subs) do settle_sub(sub) end
  if next(act.touched_limits) or next(act.touched_lots) then lots.settle() end
end
