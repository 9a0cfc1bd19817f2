-- How long tasks will probably wait, read from the forecast that the estimator saves every few seconds (docs/estimates.md).
-- fairlead/estimates/reading.py is the twin in Python.
--
-- A forecast has a curve for each lane, and for each limit that tasks wait for in each place: when a task starts whose position in the
-- order is (tag, seq), in ms after the forecast, as p50 and p90. A task waits for the latest of the curves that it is on. A curve is a
-- text of numbers with leading zeros (store/estimates.py), so that a point is found without reading the others:
--
--   ahead, each, longer, soon; tag, seq, p50, p90; tag, seq, p50, p90; ...
--
-- Its last point is that of a newcomer. `ahead`: how many tasks waited for this lane or limit at the time of the forecast, in its priority
-- or a better one; `each`: ms that every further one takes, and `longer`, for p90; `soon`: the mean ms until a slot or unit gets free when
-- none is, which may have changed since the forecast. An empty curve: nobody knows when any of them starts.
-- Lanes that the forecast did not know have the curve "place:*". The field `head` has the time of the forecast, the mean ms of a `run`, and how
-- it is corrected: by priority and then by length (p50 up to the bounds in `lengths`), p50 and p90 are multiplied by these thousandths
-- (fairlead/estimates/calibration.py).
--
-- An estimate is {p50, p90, at}, and unless it is of another kind of wait, p50 and p90 before they were corrected, and the priority:
-- the start of the task shows how they fitted.

local TAG, SEQ, MS = 16, 13, 12 -- digits
local POSITION, POINT, HEADER = TAG + SEQ, TAG + SEQ + 2 * MS, 4 * MS
local LAST = "~" -- a position behind all others
local HALF, MOST = 0.693, 2.303 -- of what ends at random, half have ended by this part of the mean, and 90 % by that
local LEAST = 50 -- ms: nothing that waits is promised to start sooner

-- A curve, or the table in the field `head`.
local function found(name)
  local known = act.curves[name]
  if known == nil then
    known = get(hash(keys.forecast), name) or false
    act.curves[name] = known
  end
  return known or nil
end

local function head_of_forecast()
  local head = found("head")
  if type(head) == "string" then
    head = cmsgpack.unpack(head)
    act.curves.head = head
  end
  return head
end

local function curve_name(place, limit)
  return place .. "@" .. limit
end

-- Either may be infinite.
local function position(tag, seq)
  if tag == math.huge then return LAST end
  return string.format("%016d%013d", tag, math.min(seq, 10 ^ SEQ - 1))
end

local function cut(curve, start, length)
  return tonumber(string.sub(curve, start + 1, start + length))
end

local function start_of(point) return HEADER + point * POINT end

-- p50 and p90 of a point, from 0.
local function values_of(curve, point)
  local start = start_of(point) + POSITION
  return cut(curve, start, MS), cut(curve, start + MS, MS)
end

-- The first point that is not ahead of a position; the number of points if all are.
local function point_at(curve, where)
  local low, high = 0, (#curve - HEADER) / POINT
  while low < high do
    local middle = math.floor((low + high) / 2)
    local start = start_of(middle)
    if string.sub(curve, start + 1, start + POSITION) < where then low = middle + 1 else high = middle end
  end
  return low
end

-- How far a position is between two points of a curve: by tag, or between equal tags by seq.
local function part_between(curve, point, where)
  local function part(from, digits)
    local before, after = cut(curve, start_of(point - 1) + from, digits), cut(curve, start_of(point) + from, digits)
    return after > before and (cut(where, from, digits) - before) / (after - before) or nil
  end
  return part(0, TAG) or part(TAG, SEQ)
end

-- p50 and p90 of what is left of the wait on a curve, `passed` ms after it was made. Of those that the forecast did not know, each has to
-- wait for `later` more tasks than its newcomer. Since the first start was due, tasks have started and made `later` smaller: that time is
-- not counted a second time. `is_full`: no slot or unit is free.
local function left_on(curve, where, passed, later, is_full)
  local point, count = point_at(curve, where), (#curve - HEADER) / POINT
  if point == count then
    local soonest_p50, soonest_p90 = values_of(curve, 0)
    local p50, p90 = values_of(curve, count - 1)
    local soon = is_full and cut(curve, 3 * MS, MS) or 0
    p50 = math.max(p50 - math.min(passed, soonest_p50), HALF * soon) + later * cut(curve, MS, MS)
    return p50, math.max(p90 - math.min(passed, soonest_p90), MOST * soon) + later * cut(curve, 2 * MS, MS)
  end
  local p50, p90 = values_of(curve, point)
  if point > 0 then
    local before_p50, before_p90 = values_of(curve, point - 1)
    local part = part_between(curve, point, where)
    p50, p90 = before_p50 + part * (p50 - before_p50), before_p90 + part * (p90 - before_p90)
  end
  return p50 - passed, p90 - passed
end

-- How p50 and p90 are corrected.
local function corrected(head, class, p50, p90)
  local length = 1
  for _, bound in ipairs(head.lengths) do length = length + (p50 >= bound and 1 or 0) end
  local by = head.corrections[class + 1][length]
  local half = math.max(0, math.floor((p50 + LEAST) * by[1] / 1000) - LEAST)
  return half, math.max(half, LEAST, math.floor((p90 + LEAST) * by[2] / 1000) - LEAST)
end

-- The wait for a limit that was not full at the time of the forecast, but is now.
local function left_of_new(limit, units, run, later)
  if get(limit, "kind") ~= "slots" then return 0, 0 end
  local soon = run * units / math.max(1, number(limit, "limit"))
  return HALF * soon + later * soon, MOST * soon + later * soon
end

-- What is left on the curve of the lane and on those of the limits, the latest of them; nil when nothing is known.
local function latest(head, sub, where, ahead, own)
  local place = names.place_of(sub)
  local curve = found(subs.lane(sub))
  if not curve and audiences.workers_for(subs.route(sub)) > 0 then curve = found(names.lane(place, "*")) end
  local p50, p90, passed = 0, 0, act.instant - head.at
  local function wait_for(half, most) p50, p90 = math.max(p50, half), math.max(p90, most) end
  if not curve or curve == "" then return nil end
  wait_for(left_on(curve, where, passed, ahead - cut(curve, 0, MS), waking.count_idlers(subs.lane(sub)) == 0))
  for _, need in ipairs(subs.needs(sub)) do
    local limit = limits.of(need.name) -- nil: the task that is to be submitted defines it
    local of_limit = limit and found(curve_name(place, need.name))
    if of_limit == "" then return nil end
    local is_full = limit and limits.room(limit, subs.class(sub), get(limit, "hold") == sub) < need.units
    local before = limit and math.min(ahead, (number(limit, "waiting") or 0) - own)
    if of_limit then
      wait_for(left_on(of_limit, where, passed, before - cut(of_limit, 0, MS), is_full))
    elseif is_full then
      wait_for(left_of_new(limit, need.units, head.run, before))
    end
  end
  return math.floor(p50 + 0.5), math.floor(math.max(p50, p90, LEAST) + 0.5)
end

-- Of a task at this place in the order of a sub-queue; nil when nothing is known. `ahead`: how many of its priority or a better one wait ahead of it;
-- `own`: 1 if it is queued itself, else 0.
local function estimate_at(sub, tag, seq, ahead, own)
  local head, class = head_of_forecast(), subs.class(sub)
  if not head then return nil end
  local raw_p50, raw_p90 = latest(head, sub, position(tag, seq), ahead, own)
  if not raw_p50 then return nil end
  local p50, p90 = corrected(head, class, raw_p50, raw_p90)
  return {p50, p90, act.instant, raw_p50, raw_p90, class}
end

-- Of a task that is submitted now; `position` is what its submitter learns. It starts at once when a waiting worker takes it, and waits
-- for at most a moment when one is there for it.
function forecasts.of_new(t, place, taker, position, blocked_by)
  local sub = subs.of(place, t)
  local idle = taker and position or waking.count_idlers(subs.lane(sub))
  if position <= idle and not blocked_by then return {0, LEAST, act.instant, 0, LEAST, subs.class(place)} end
  return estimate_at(sub, number(t, "tag"), number(t, "seq"), math.max(0, position - 1 - idle), 1)
end

local function has_room(sub)
  for _, need in ipairs(subs.needs(sub)) do
    local limit = limits.of(need.name)
    if limit and limits.room(limit, subs.class(sub), false) < need.units then return false end
  end
  return true
end

-- Of a task that would be queued now, at this position of the order. If a waiting worker has room for it, it starts at once.
function forecasts.of_spec(spec, tag, seq)
  local sub = names.sub_queue(int(spec.priority) .. "n", subs.route_of(spec.type, spec.capabilities), spec.limits)
  local ahead = backlog.next_position(spec.priority) - 1 - waking.count_idlers(subs.lane(sub))
  if ahead < 0 and has_room(sub) then return {0, LEAST, act.instant} end
  return estimate_at(sub, tag, seq, math.max(0, ahead), 0)
end

-- Of a task that has been waiting.
function forecasts.of_waiting(t, sub, ahead)
  return estimate_at(sub, number(t, "tag"), number(t, "seq"), ahead, 1)
end

-- Of a task that is delayed: from its time on it waits like one that comes now.
function forecasts.of_delayed(t)
  local class = tonumber(t.known.facts.priority)
  local sub, left = subs.of(int(class) .. "n", t), math.max(0, number(t, "run_at") - act.instant)
  local found = estimate_at(sub, math.huge, math.huge, backlog.next_position(class) - 1, 0)
  return found and {found[1] + left, found[2] + left, act.instant}
end

-- Of any task; nil also when it does not wait.
function forecasts.of_task(t)
  local state = get(t, "state")
  if state == "delayed" then return forecasts.of_delayed(t) end
  if state ~= "queued" then return nil end
  local place = get(t, "place")
  local _, _, ahead = ranks.ahead_of(t, place)
  return forecasts.of_waiting(t, subs.of(place, t), ahead)
end

-- The instant at which the first of the tasks of a place that wait for this limit is expected to start; nil when that is not known.
function forecasts.first_start(place, limit)
  local head, curve = head_of_forecast(), found(curve_name(place, limit))
  return head and curve and curve ~= "" and math.max(act.instant, head.at + (values_of(curve, 0))) or nil
end

-- As a reply has it.
function forecasts.shown(estimate)
  return estimate and {estimate[1], estimate[2], estimate[3]}
end
