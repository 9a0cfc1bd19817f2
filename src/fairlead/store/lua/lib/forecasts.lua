-- How long tasks will probably wait, read from the forecast that the estimator saves every few seconds (docs/estimates.md).
--
-- A forecast has a curve for each lane, and for each limit that tasks wait for in each place: when a task starts whose position in the
-- order is (tag, seq), in ms after the forecast, as p50 and p90. A task waits for the latest of the curves that it is on. A curve is
--
--   {ahead, each, longer, tag, seq, p50, p90, tag, seq, p50, p90, ...}
--
-- Its last point is that of a newcomer. `ahead`: how many tasks waited for this lane or limit at the time of the forecast, in its priority
-- or a better one; `each`: ms that every further one takes, and `longer`, for p90. An empty curve: nobody knows when any of them starts.
-- Lanes that the forecast did not know have the curve "place:*". The field `head` has the time of the forecast, and how it is corrected: by
-- priority and then by length (p50 up to the bounds in `lengths`), p50 and p90 are multiplied by these thousandths
-- (fairlead/estimates/calibration.py).
--
-- An estimate is {p50, p90, at}, and unless it is of another kind of wait, p50 and p90 before they were corrected, and the priority:
-- the start of the task shows how they fitted.

local HEADER = 3 -- values before the points
local LEAST = 50 -- ms: nothing that waits is promised to start sooner

local function unpacked(name)
  local found = act.curves[name]
  if found == nil then
    local packed = get(hash(keys.forecast), name)
    found = packed and cmsgpack.unpack(packed) or false
    act.curves[name] = found
  end
  return found or nil
end

local function curve_name(place, limit)
  return place .. "@" .. limit
end

-- The value at this position, linear between two points; nil behind the last.
local function between_points(curve, tag, seq, value)
  local at, count = HEADER + 1, #curve
  while at <= count and (curve[at] < tag or curve[at] == tag and curve[at + 1] < seq) do at = at + 4 end
  if at > count then return nil end
  if at == HEADER + 1 then return curve[at + value] end
  local key = curve[at] > curve[at - 4] and 0 or 1 -- by tag; by seq between equal tags
  local part = ((key == 0 and tag or seq) - curve[at - 4 + key]) / (curve[at + key] - curve[at - 4 + key])
  return curve[at - 4 + value] + part * (curve[at + value] - curve[at - 4 + value])
end

-- What is left of the wait on a curve, `passed` ms after it was made; `value` is 2 for p50 and 3 for p90. Of those that the forecast did
-- not know, each has to wait for `later` more tasks than its newcomer. Since the first start was due, tasks have started and made
-- `later` smaller: that time is not counted a second time.
local function left_on(curve, tag, seq, passed, later, value)
  local known = between_points(curve, tag, seq, value)
  if known then return math.max(0, known - passed) end
  local soonest, newcomer = curve[HEADER + 1 + value], curve[#curve - 3 + value]
  return math.max(0, newcomer - math.min(passed, soonest) + later * curve[value])
end

-- How p50 and p90 are corrected.
local function corrected(head, class, p50, p90)
  local length = 1
  for _, bound in ipairs(head.lengths) do length = length + (p50 >= bound and 1 or 0) end
  local by = head.corrections[class + 1][length]
  local half = math.max(0, math.floor((p50 + LEAST) * by[1] / 1000) - LEAST)
  return half, math.max(half, LEAST, math.floor((p90 + LEAST) * by[2] / 1000) - LEAST)
end

-- What is left on the curve of the lane and on those of the limits, the latest of them; nil when nothing is known.
local function latest(sub, tag, seq, ahead, own, passed)
  local place = names.place_of(sub)
  local curve = unpacked(subs.lane(sub))
  if not curve and audiences.workers_for(subs.route(sub)) > 0 then curve = unpacked(names.lane(place, "*")) end
  local p50, p90 = 0, 0
  local function wait_on(one, count)
    p50 = math.max(p50, left_on(one, tag, seq, passed, count - one[1], 2))
    p90 = math.max(p90, left_on(one, tag, seq, passed, count - one[1], 3))
  end
  if not curve or not curve[1] then return nil end
  wait_on(curve, ahead)
  for _, need in ipairs(subs.needs(sub)) do
    local limit = limits.of(need.name) -- nil: the task that is to be submitted defines it
    local of_limit = limit and unpacked(curve_name(place, need.name))
    if of_limit and not of_limit[1] then return nil end
    if of_limit then wait_on(of_limit, math.min(ahead, (number(limit, "waiting") or 0) - own)) end
  end
  return math.floor(p50), math.floor(math.max(p50, p90, LEAST))
end

-- Of a task at this position of a sub-queue; nil when nothing is known. `ahead`: how many of its priority or a better one wait ahead of it;
-- `own`: 1 if it is queued itself, else 0.
local function estimate_at(sub, tag, seq, ahead, own)
  local head, class = unpacked("head"), subs.class(sub)
  if not head then return nil end
  local raw_p50, raw_p90 = latest(sub, tag, seq, ahead, own, act.instant - head.at)
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
  local head, curve = unpacked("head"), unpacked(curve_name(place, limit))
  return head and curve and curve[1] and math.max(act.instant, head.at + curve[HEADER + 3]) or nil
end

-- As a reply has it.
function forecasts.shown(estimate)
  return estimate and {estimate[1], estimate[2], estimate[3]}
end
