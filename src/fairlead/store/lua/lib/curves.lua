-- Curves of a forecast: when a task starts whose position in the order is (tag, seq), in ms after the forecast, as p50 and p90. A curve
-- is a text of numbers with leading zeros (store/estimates.py), so that a point is found without reading the others:
--
--   ahead, each, longer, soon, gone...; tag, seq, rank, p50, p90; tag, seq, rank, p50, p90; ...
--
-- Its last point is that of a newcomer. `rank`: how many tasks were ahead of this position at the time of the forecast: in better
-- priorities, and in its place; `ahead`: how many waited for this lane or limit, in its priority or a better one; `each`: ms that every
-- further one takes, and `longer`, for p90; `soon`: the mean ms until a slot or unit gets free when none is, which may have changed since
-- the forecast; `gone`: how many of those that waited were expected to have started some time later (GONE_AT), in hundredths.

local TAG, SEQ, MS = 16, 13, 12 -- digits
local GONE_AT = {500, 1000, 2000, 4000, 8000, 16000, 32000, 64000} -- ms after the forecast (fairlead/estimates/curve.py)
local GONE = 4 * MS
local POSITION, POINT, HEADER = TAG + SEQ, TAG + SEQ + 3 * MS, GONE + #GONE_AT * MS
local LAST = "~" -- a position behind all others
local HALF, MOST = 0.693, 2.303 -- of what ends at random, half have ended by this part of the mean, and 90 % by that

-- Either may be infinite.
function curves.position(tag, seq)
  if tag == math.huge then return LAST end
  return string.format("%016d%013d", tag, math.min(seq, 10 ^ SEQ - 1))
end

local function cut(curve, start, length)
  return tonumber(string.sub(curve, start + 1, start + length))
end

local function start_of(point) return HEADER + point * POINT end

-- Rank, p50 and p90 of a point, from 0.
local function values_of(curve, point)
  local start = start_of(point) + POSITION
  return cut(curve, start, MS), cut(curve, start + MS, MS), cut(curve, start + 2 * MS, MS)
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

-- Rank, p50 and p90 of a position; those of the last point if all are ahead of it.
function curves.at(curve, where)
  local point, count = point_at(curve, where), (#curve - HEADER) / POINT
  if point == count then return values_of(curve, count - 1) end
  local rank, p50, p90 = values_of(curve, point)
  if point == 0 then return rank, p50, p90 end
  local rank_before, p50_before, p90_before = values_of(curve, point - 1)
  local part = part_between(curve, point, where)
  local function between(before, after) return before + part * (after - before) end
  return between(rank_before, rank), between(p50_before, p50), between(p90_before, p90)
end

-- How many of those that waited should have started by now.
function curves.gone(curve, passed)
  local at_before, before = 0, 0
  for i, at in ipairs(GONE_AT) do
    local count = cut(curve, GONE + (i - 1) * MS, MS)
    if passed <= at then return (before + (count - before) * (passed - at_before) / (at - at_before)) / 100 end
    at_before, before = at, count
  end
  return before / 100
end

-- How many waited for it.
function curves.ahead(curve) return cut(curve, 0, MS) end

-- The p50 of the first point.
function curves.first(curve) return select(2, values_of(curve, 0)) end

-- What is left of `ms`; when they are over, `rest`. For each task more than expected `each` is added, but it is never less than nothing.
local function left_of(ms, passed, rest, more, each)
  return math.max(0, (ms > passed and ms - passed or rest) + more * each)
end

-- What is left of these p50 and p90 of a curve, `passed` ms after it was made, when `more` tasks are ahead than it expected by now.
-- `is_full`: no slot or unit is free.
function curves.left(curve, p50, p90, passed, more, is_full)
  local soon = is_full and cut(curve, 3 * MS, MS) or 0
  return left_of(p50, passed, HALF * soon, more, cut(curve, MS, MS)), left_of(p90, passed, MOST * soon, more, cut(curve, 2 * MS, MS))
end
