-- Who goes next (docs/scheduler.md, Order): the best of the heads this worker can serve.

local whole, number, put = hashes.whole, hashes.number, hashes.put
local ordered, first = sets.ordered, sets.first
local setting = acts.setting

-- The lanes with somebody in them that this worker can serve.
function choice.lanes_for(worker)
  local all, list = whole(keys.lanes), {}
  if not all then return list end
  local profile = workers.profile_of(worker, true)
  for lane, count in pairs(all.known) do
    if count and workers.serves(profile, lane) and not queues.is_paused(lane) then
      local place = limits.place_of(lane)
      list[#list + 1] = {
        name = lane, class = limits.class_of(lane), promoted = string.sub(place, 2) == "p", native_high = place == "0n",
      }
    end
  end
  return list
end

local STREAKS = {[0] = "streak_0", "streak_1", "streak_2"}

-- In which order native and promoted go within a priority: promoted first once the native ones have had their budget.
function choice.turn_of(lane)
  local budget = setting("budget")
  if budget == 0 then return 0 end
  local promoted_first = (number(act.meta, STREAKS[lane.class]) or 0) >= budget
  return lane.promoted == promoted_first and 0 or 1
end

function choice.better(a, b)
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
      local member, tag = first(ordered(keys.heads(lane.name)))
      if member then
        local seq, what = string.sub(member, 1, 13), string.sub(member, 14)
        local head = {class = lane.class, turn = choice.turn_of(lane), tag = tag, seq = seq, what = what}
        if not best or choice.better(head, best) then best = head end
      end
    end
  end
  return best
end

-- The sub-queue a head stands for: itself, or, behind a marker, the first of the lot.
local function sub_behind(head)
  if string.sub(head.what, 1, 1) == "s" then return string.sub(head.what, 2) end
  return string.sub(first(ordered(keys.parked(string.sub(head.what, 2)))), 14)
end

-- Looks at heads, best first, and parks what cannot start, until one can: its sub-queue, or nil.
function choice.best(served, open, steps)
  while steps.left > 0 do
    local head = best_head(served, open)
    if not head or head.class > (act.overdue or 2) then return nil end -- a better one is due, but not queued yet
    steps.left = steps.left - 1
    local sub = sub_behind(head)
    local lacking = limits.blocking(sub)
    if not lacking then return sub, head end
    lots.stand(sub, "p" .. lots.lot_name(lacking, sub), head.seq, head.tag)
    queues.settle()
  end
end

function choice.book_turn(place)
  local budget, class = setting("budget"), limits.class_of(place)
  if budget == 0 or class == 2 then return end
  local streak = number(act.meta, STREAKS[class]) or 0
  put(act.meta, STREAKS[class], string.sub(place, 2) == "p" and 0 or math.min(budget, streak + 1))
end
