-- How long tasks will probably wait, read from the forecast that the estimator saves every few seconds (docs/estimates.md).
--
-- A forecast has a curve for each lane, and for each limit that tasks wait for in each place: when a task starts whose position in the
-- order is (tag, seq), in ms after the forecast, as p50 and p90. A task waits for the latest of the curves that it is on. A curve is
--
--   {ahead, each, longer, tag, seq, p50, p90, tag, seq, p50, p90, ...}
--
-- `ahead`: how many tasks waited for this lane or limit at the time of the forecast, in its priority or a better one; `each`: ms that every
-- further one takes, and `longer`, for p90. The field `head` has the time of the forecast and, by priority, how it was corrected: p50 and
-- p90 are multiplied by these thousandths.

local HEADER = 3 -- values before the positions
local LEAST_P90 = 50 -- ms: nothing that waits is promised to start sooner
local UNCORRECTED = {1000, 1000}

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

-- The point of a curve for a position, and whether it is behind all that the forecast knew.
local function point(curve, tag, seq)
  local at, count = HEADER + 1, #curve
  while at <= count and (curve[at] < tag or curve[at] == tag and curve[at + 1] < seq) do at = at + 4 end
  if at > count then return curve[at - 2], curve[at - 1], true end
  if at == HEADER + 1 then return curve[at + 2], curve[at + 3], false end
  local part
  if curve[at] > curve[at - 4] then
    part = (tag - curve[at - 4]) / (curve[at] - curve[at - 4])
  else
    part = (seq - curve[at - 3]) / (curve[at + 1] - curve[at - 3])
  end
  local function between(i) return curve[i - 4] + part * (curve[i] - curve[i - 4]) end
  return between(at + 2), between(at + 3), false
end

-- What is left of the wait on one curve, of which `passed` ms are over; `waiting` tasks wait there now.
local function left_on(curve, tag, seq, passed, waiting)
  local p50, p90, is_last = point(curve, tag, seq)
  local later = is_last and math.max(0, waiting - curve[1]) or 0 -- came after the forecast was made
  return math.max(0, p50 - passed) + later * curve[2], math.max(0, p90 - passed) + later * curve[3]
end

-- The wait of a task at this position of a sub-queue, as {p50, p90, and both before they are corrected}; nil when nothing is known.
-- `position`: how many tasks of its priority or a better one wait, with itself, of those that came since the forecast.
local function estimate_at(sub, tag, seq, position)
  local head, place, lane = unpacked("head"), names.place_of(sub), subs.lane(sub)
  local curve = head and unpacked(lane)
  if not curve then return nil end
  local passed = act.instant - head.at
  local p50, p90 = left_on(curve, tag, seq, passed, position)
  for _, need in ipairs(subs.needs(sub)) do
    local known = limits.of(need.name) -- nil: the task that is to be submitted defines it
    local limit = known and unpacked(curve_name(place, need.name))
    if limit then
      local waiting = math.min(position, number(known, "waiting") or 0)
      local of_limit_p50, of_limit_p90 = left_on(limit, tag, seq, passed, waiting)
      p50, p90 = math.max(p50, of_limit_p50), math.max(p90, of_limit_p90)
    end
  end
  local corrected = head.corrections[subs.class(place) + 1] or UNCORRECTED
  local told = math.floor(p50 * corrected[1] / 1000)
  return {told, math.floor(math.max(told, math.max(p90, LEAST_P90) * corrected[2] / 1000)), math.floor(p50), math.floor(p90)}
end

forecasts.AT_ONCE = {0, 0} -- for a task that starts when it is submitted

-- Of a task that is queued in this act; `position` is what its submitter learns. Workers that wait take what can start.
function forecasts.of_new(t, position, blocked_by)
  local sub = subs.of(get(t, "place"), t)
  local idle = waking.count_idlers(subs.lane(sub))
  if position <= idle and not blocked_by then return forecasts.AT_ONCE end
  return estimate_at(sub, number(t, "tag"), number(t, "seq"), position - idle)
end

local function has_room(sub)
  for _, need in ipairs(subs.needs(sub)) do
    local limit = limits.of(need.name)
    if limit and limits.room(limit, subs.class(sub), false) < need.units then return false end
  end
  return true
end

-- Of a task that would be submitted now.
function forecasts.of_spec(spec, place)
  local sub = names.sub_queue(place, subs.route_of(spec.type, spec.capabilities), spec.limits)
  local position, idle = backlog.next_position(spec.priority), waking.count_idlers(subs.lane(sub))
  if position <= idle and has_room(sub) then return forecasts.AT_ONCE end
  return estimate_at(sub, fair_share.next_tag(place, spec.fair), math.huge, position - idle)
end

-- Of a task that has been waiting.
function forecasts.of_waiting(t, sub)
  return estimate_at(sub, number(t, "tag"), number(t, "seq"), 0)
end

-- Of a task that is delayed: from its time on it waits behind those that wait now.
function forecasts.of_delayed(t)
  local sub = subs.of(int(t.known.facts.priority) .. "n", t)
  local found, left = estimate_at(sub, math.huge, math.huge, 0), math.max(0, number(t, "run_at") - act.instant)
  return found and {found[1] + left, found[2] + left, found[3] + left, found[4] + left}
end

-- The instant at which the first of the tasks of a place that wait for this limit is expected to start; nil when that is not known.
function forecasts.first_start(place, limit)
  local head, curve = unpacked("head"), unpacked(curve_name(place, limit))
  return head and curve and math.max(act.instant, head.at + curve[HEADER + 3]) or nil
end

-- As a reply has it: p50, p90, and the time it is of.
function forecasts.shown(estimate)
  return estimate and {estimate[1], estimate[2], act.instant}
end
