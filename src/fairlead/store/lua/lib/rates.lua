-- Rates: limits whose units refill by time alone. `tat` is when all units that were taken have refilled, in microseconds.

-- A rate owes its burst at most: a `tat` beyond that is from before the clock was set back, and is corrected here.
local function grown_back_at(limit)
  local tat = number(limit, "tat") or 0
  local latest = act.instant * 1000 + number(limit, "burst") * number(limit, "interval")
  if tat <= latest then return tat end
  put(limit, "tat", latest)
  return latest
end

local function set_grown_back_at(limit, tat)
  put(limit, "tat", tat)
  if act.instant > (number(act.meta, "rated") or 0) then put(act.meta, "rated", act.instant) end
end

function rates.room(limit)
  local interval, burst = number(limit, "interval"), number(limit, "burst")
  local now_us = act.instant * 1000
  local tat = math.max(grown_back_at(limit), now_us)
  return math.min(burst, math.floor((now_us + burst * interval - tat) / interval))
end

-- The instant in ms at which it has `units` again.
function rates.refilled_at(limit, units)
  local interval, burst = number(limit, "interval"), number(limit, "burst")
  return math.ceil((grown_back_at(limit) + (units - burst) * interval) / 1000)
end

function rates.take(limit, units)
  set_grown_back_at(limit, math.max(grown_back_at(limit), act.instant * 1000) + units * number(limit, "interval"))
end

-- The rate changes: it owes the same units as before, up to its new burst.
function rates.rescale(limit, interval, burst)
  local now_us = act.instant * 1000
  local debt = grown_back_at(limit) - now_us
  if debt <= 0 then return put(limit, "tat", nil) end
  debt = math.floor(debt / number(limit, "interval") * interval)
  set_grown_back_at(limit, now_us + math.min(debt, burst * interval))
end

local function touch_all(lot)
  for _, need in ipairs(names.lot_parts(lot).needs) do limits.touch(need.name) end
end

-- The clock was set back since something was last taken of a rate: what waits for a refill was given an instant of the old time.
function rates.follow_clock(now)
  if now >= (number(act.meta, "rated") or 0) then return end
  for _, lot in ipairs(members(ordered(keys.refills))) do touch_all(lot) end
  for _, name in ipairs(members(ordered(keys.revisits))) do acquiring.look_at(name) end
  put(act.meta, "rated", now)
end
