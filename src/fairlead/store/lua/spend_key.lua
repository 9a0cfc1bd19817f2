-- Take from the rate of an API key, or from the default rate if it has none: all that is asked for, or nothing.
--
-- ARGV     id tasks usual_interval usual_burst clock
-- RETURNS  ok | rate_limited wait (ms) | over_burst burst | key_unknown | uninitialised

local record = whole(keys.key(id))
if not record then return {answer = "key_unknown"} end
local interval = number(record, "interval") or tonumber(usual_interval)
local burst = number(record, "burst") or tonumber(usual_burst)
if not interval then return {answer = "ok"} end
if tonumber(tasks) > burst then return {answer = "over_burst", burst = burst} end -- it could never be accepted

local now_us, known = now * 1000, number(record, "tat") or 0
-- it owes its burst at most: anything beyond is from before the clock was set back, or of another rate
local owes_until = math.min(math.max(known, now_us), now_us + burst * interval)
local early = owes_until + (tasks - burst) * interval - now_us
if early <= 0 then owes_until = owes_until + tasks * interval end
if early <= 0 or owes_until < known then
  put(record, "tat", owes_until)
  commit()
end
if early > 0 then return {answer = "rate_limited", wait = math.ceil(early / 1000)} end
return {answer = "ok"}
