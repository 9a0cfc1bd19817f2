-- Who goes next (docs/scheduler.md, Order): the best of the heads this worker can serve.
--
-- USES     workers

-- The lanes with somebody in them that this worker can serve.
local function lanes_for(worker)
  local all, list = whole(lanes_key), {}
  if not all then return list end
  local profile = profile_of(worker, true)
  for lane, count in pairs(all.known) do
    if count and serves(profile, lane) and not is_paused(lane) then
      local place = place_of(lane)
      list[#list + 1] = {
        name = lane, class = class_of(lane), promoted = string.sub(place, 2) == "p", native_high = place == "0n",
      }
    end
  end
  return list
end

local STREAKS = {[0] = "streak_0", "streak_1", "streak_2"}

-- In which order native and promoted go within a priority: promoted first once the native ones have had their budget.
local function turn_of(lane)
  local budget = setting("budget")
  if budget == 0 then return 0 end
  local promoted_first = (number(meta, STREAKS[lane.class]) or 0) >= budget
  return lane.promoted == promoted_first and 0 or 1
end

local function better(a, b)
  if a.class ~= b.class then return a.class < b.class end
  if a.turn ~= b.turn then return a.turn < b.turn end
  if a.tag ~= b.tag then return a.tag < b.tag end
  return a.seq < b.seq
end

-- The best head over the lanes `served`; with no open room only base high may start.
local function best_head(served, open)
  local best
  for _, lane in ipairs(served) do
    if open or lane.native_high then
      local member, tag = first(ordered(heads_key(lane.name)))
      if member then
        local seq, what = string.sub(member, 1, 13), string.sub(member, 14)
        local head = {class = lane.class, turn = turn_of(lane), tag = tag, seq = seq, what = what}
        if not best or better(head, best) then best = head end
      end
    end
  end
  return best
end

-- The sub-queue a head stands for: itself, or, behind a marker, the first of the lot.
local function sub_behind(head)
  if string.sub(head.what, 1, 1) == "s" then return string.sub(head.what, 2) end
  return string.sub(first(ordered(parked_key(string.sub(head.what, 2)))), 14)
end

-- Looks at heads, best first, and parks what cannot start, until one can: its sub-queue, or nil.
local function choose(served, open, steps)
  while steps.left > 0 do
    local head = best_head(served, open)
    if not head then return nil end
    steps.left = steps.left - 1
    local sub = sub_behind(head)
    local lacking = blocking(sub)
    if not lacking then return sub, head end
    stand(sub, "p" .. lot_name(lacking, sub), head.seq, head.tag)
    settle()
  end
end

local function book_turn(place)
  local budget, class = setting("budget"), class_of(place)
  if budget == 0 or class == 2 then return end
  local streak = number(meta, STREAKS[class]) or 0
  put(meta, STREAKS[class], string.sub(place, 2) == "p" and 0 or math.min(budget, streak + 1))
end
