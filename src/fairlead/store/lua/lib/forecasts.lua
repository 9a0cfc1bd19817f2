-- How long tasks will probably wait, read from the forecast that the estimator saves every few seconds (docs/estimates.md).
-- fairlead/estimates/reading.py is the twin in Python.
--
-- A forecast has a curve for each lane, and for each limit that tasks wait for in each place (lib/curves.lua). A task waits for the latest of
-- the curves that it is on. An empty curve: nobody knows when any of them starts.
-- Lanes that the forecast did not know have the curve "place:*". The field `head` has the time of the forecast, the mean ms of a `run`, and how
-- it is corrected: by priority and then by length (p50 up to the bounds in `lengths`), p50 and p90 are multiplied by these thousandths
-- (fairlead/estimates/calibration.py).
--
-- An estimate is {p50, p90, at}, and unless it is of another kind of wait, p50 and p90 before they were corrected, and the priority:
-- the start of the task shows how they fitted.

local HALF, MOST = 0.693, 2.303 -- of what ends at random, half have ended by this part of the mean, and 90 % by that
local LEAST = 50 -- ms: nothing that waits is promised to start sooner
local LARGER = 8 -- sizes that are tried where nobody waits for as many units

-- A curve, or the table in the field `head`.
local function found(name)
  local known = act.curves[name]
  if known == nil then
    known = get(hash(keys.curves), name) or false
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

-- Those that need about as many units of a limit have a curve of their own (fairlead/estimates/curve.py).
local function size_of(units)
  local coarseness = 1
  while units > 8 * coarseness do coarseness = 2 * coarseness end
  return math.ceil(units / coarseness) * coarseness
end

local function sized(name, size)
  return size > 1 and name .. "#" .. int(size) or name
end

-- The one that says most about these units.
local function curve_of_limit(place, need)
  local of_all, size = found(curve_name(place, need.name)), size_of(need.units)
  for _ = 1, of_all and need.units > 1 and LARGER or 0 do
    local curve = found(curve_name(place, sized(need.name, size)))
    if curve then return curve end
    size = size_of(size + 1)
  end
  return of_all
end

-- How p50 and p90 are corrected.
local function corrected(head, class, p50, p90)
  local length = 1
  for _, bound in ipairs(head.lengths) do length = length + (p50 >= bound and 1 or 0) end
  local by = head.corrections[class + 1][length]
  local half = math.max(0, math.floor((p50 + LEAST) * by[1] / 1000) - LEAST)
  return half, math.max(half, LEAST, math.floor((p90 + LEAST) * by[2] / 1000) - LEAST)
end

-- The wait for a limit that was not full at the time of the forecast, but is now. Of tasks like those that came lately the field "soon@..."
-- has the ms between two starts.
local function left_of_new(limit, need, run, later)
  if get(limit, "kind") ~= "slots" then return 0, 0 end
  local soon = tonumber(found("soon@" .. sized(need.name, size_of(need.units))) or nil) or run * need.units / math.max(1, number(limit, "limit"))
  return HALF * soon + later * soon, MOST * soon + later * soon
end

-- What is left on the curve of the lane and on those of the limits, the latest of them; nil when nothing is known.
local function latest(head, sub, where, at)
  local place = names.place_of(sub)
  local curve = found(subs.lane(sub))
  if not curve and audiences.workers_for(subs.route(sub)) > 0 then curve = found(names.lane(place, "*")) end
  local p50, p90, passed = 0, 0, act.instant - head.at
  local function wait_for(half, most) p50, p90 = math.max(p50, half), math.max(p90, most) end
  if not curve or curve == "" then return nil end
  local idle, rank, half, most = waking.count_idlers(subs.lane(sub)), curves.at(curve, where)
  local more = at.rank - math.max(0, rank - curves.gone(curve, passed))
  wait_for(curves.left(curve, half, most, passed, more - idle, idle == 0))
  for _, need in ipairs(subs.needs(sub)) do
    local limit = limits.of(need.name) -- nil: the task that is to be submitted defines it
    local of_limit = limit and curve_of_limit(place, need)
    if of_limit == "" then return nil end
    local is_full = limit and limits.room(limit, subs.class(sub), get(limit, "hold") == sub) < need.units
    local before = limit and math.min(at.before, (number(limit, "waiting") or 0) - at.own)
    if of_limit then
      local more_here = before - math.max(0, curves.ahead(of_limit) - curves.gone(of_limit, passed))
      local _, here, at_most = curves.at(of_limit, where)
      wait_for(curves.left(of_limit, here, at_most, passed, math.min(more, more_here), is_full))
    elseif is_full then
      wait_for(left_of_new(limit, need, head.run, before))
    end
  end
  return math.floor(p50 + 0.5), math.floor(math.max(p50, p90, LEAST) + 0.5)
end

-- Of a task at this place in the order of a sub-queue; nil when nothing is known. `at`: how many others of its priority or a better one
-- wait, `before`, and how many of these are ahead of it, `rank`; `own`: 1 if it is counted among those that wait, else 0.
local function estimate_at(sub, tag, seq, at)
  local head, class = head_of_forecast(), subs.class(sub)
  if not head then return nil end
  local raw_p50, raw_p90 = latest(head, sub, curves.position(tag, seq), at)
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
  local tag = number(t, "tag")
  return estimate_at(sub, tag, number(t, "seq"), {before = position - 1, rank = ranks.of_newcomer(place, tag, not taker), own = 1})
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
  local before, place = backlog.next_position(spec.priority) - 1, names.place_of(sub)
  if before < waking.count_idlers(subs.lane(sub)) and has_room(sub) then return {0, LEAST, act.instant} end
  return estimate_at(sub, tag, seq, {before = before, rank = ranks.of_newcomer(place, tag), own = 0})
end

-- Of a task that has been waiting.
function forecasts.of_waiting(t, sub)
  local head = head_of_forecast()
  if not head then return nil end
  local own = number(t, "arrival") > head.at and 1 or 0 -- else it is one of those that the forecast has counted
  local before = backlog.next_position(subs.class(sub)) - 1 - own
  return estimate_at(sub, number(t, "tag"), number(t, "seq"), {before = before, rank = ranks.of(t, names.place_of(sub)), own = own})
end

-- Of a task that is delayed: from its time on it waits like one that comes now.
function forecasts.of_delayed(t)
  local class = tonumber(t.known.facts.priority)
  local sub, left = subs.of(int(class) .. "n", t), math.max(0, number(t, "run_at") - act.instant)
  local before = backlog.next_position(class) - 1
  local found = estimate_at(sub, math.huge, math.huge, {before = before, rank = before, own = 0})
  return found and {found[1] + left, found[2] + left, act.instant}
end

-- Of any task; nil also when it does not wait.
function forecasts.of_task(t)
  local state = get(t, "state")
  if state == "delayed" then return forecasts.of_delayed(t) end
  if state ~= "queued" then return nil end
  local place = get(t, "place")
  return forecasts.of_waiting(t, subs.of(place, t))
end

-- The instant at which the first of the tasks of a place that wait for this limit is expected to start; nil when that is not known.
function forecasts.first_start(place, limit)
  local head, curve = head_of_forecast(), found(curve_name(place, limit))
  return head and curve and curve ~= "" and math.max(act.instant, head.at + curves.first(curve)) or nil
end

-- As a reply has it.
function forecasts.shown(estimate)
  return estimate and {estimate[1], estimate[2], estimate[3]}
end
