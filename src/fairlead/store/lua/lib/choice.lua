-- Which task starts next (docs/scheduler.md, Order): the best of the heads that this worker can serve.

choice.PLACES = {"0n", "0p", "1n", "1p", "2n"}
local MOST_LACKED = 4 -- limits that are noted
local STREAKS = {[0] = "streak_0", "streak_1", "streak_2"}

-- The lanes that workers of this profile look at, in places where a task waits.
function choice.lanes_of(profile)
  local list = {}
  for _, place in ipairs(choice.PLACES) do
    if backlog.queued_at(place) > 0 then
      for _, audience in ipairs(audiences.registry().of_profile[profile] or NONE) do
        list[#list + 1] = {
          name = names.lane(place, audience), place = place, class = subs.class(place), promoted = string.sub(place, 2) == "p",
        }
      end
    end
  end
  return list
end

-- The order of native and promoted tasks within a priority: promoted first once the native ones have used their budget.
function choice.turn_of(class, promoted)
  local budget = setting("budget")
  if budget == 0 then return 0 end
  local promoted_first = (number(act.meta, STREAKS[class]) or 0) >= budget
  return promoted == promoted_first and 0 or 1
end

function choice.is_better(a, b)
  if a.class ~= b.class then return a.class < b.class end
  if a.turn ~= b.turn then return a.turn < b.turn end
  if a.tag ~= b.tag then return a.tag < b.tag end
  return a.seq < b.seq
end

-- The best head over these lanes; with no open room only base high may start.
local function best_head(lanes, open)
  local best
  for _, lane in ipairs(lanes) do
    if open or lane.place == "0n" then
      local member, tag = first(ordered(keys.heads(lane.name)))
      if member then
        local head = {
          class = lane.class, turn = choice.turn_of(lane.class, lane.promoted), tag = tag, seq = names.seq_of(member),
          what = names.about(member), lane = lane.name,
        }
        if not best or choice.is_better(head, best) then best = head end
      end
    end
  end
  return best
end

-- The sub-queue that a head represents: its own, or, for a marker, the first of the lot.
function choice.sub_behind(what)
  if string.sub(what, 1, 1) == "s" then return string.sub(what, 2) end
  return names.about(first(ordered(keys.parked(string.sub(what, 2)))))
end

-- A better task was not chosen, because this limit has no room.
local function note_lacking(steps, name)
  local lacked = steps.lacked or {}
  steps.lacked = lacked
  for _, known in ipairs(lacked) do
    if known == name then return end
  end
  if #lacked < MOST_LACKED then lacked[#lacked + 1] = name end
end

-- Looks at heads, best first, and parks what cannot start, until one can: its sub-queue and its head, or nil.
function choice.best(lanes, open, steps)
  while steps.left > 0 do
    local head = best_head(lanes, open)
    if not head or head.class > (act.overdue or 2) then return nil end -- a better task is due, but not queued yet
    steps.left = steps.left - 1
    local sub = choice.sub_behind(head.what)
    local lacking = limits.blocking(sub)
    if not lacking then return sub, head end
    note_lacking(steps, lacking.name)
    lots.place(sub, head.seq, head.tag, lacking)
    queues.reindex()
  end
end

function choice.count_turn(place)
  local budget, class = setting("budget"), subs.class(place)
  if budget == 0 or class == 2 then return end
  local streak = number(act.meta, STREAKS[class]) or 0
  put(act.meta, STREAKS[class], string.sub(place, 2) == "p" and 0 or math.min(budget, streak + 1))
end

-- Why a task was chosen that was not the first in the order; nil when it was the first.
function choice.why(steps, place)
  local better = ranks.better_than(subs.class(place))
  if not steps.lacked and next(better) == nil then return nil end
  return {lacked = steps.lacked, better = next(better) and better or nil}
end

-- How a task was chosen for its last run; nil if it has not started.
function choice.of_run(t)
  local started = number(t, "started")
  if not started then return nil end
  return {
    worker = get(t, "worker"), at = started, waited = number(t, "waited"), place = get(t, "place"), tag = number(t, "tag"),
    why = get(t, "chosen"),
  }
end
