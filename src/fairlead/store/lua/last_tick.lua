-- Return the last tick of a cron and the time. A cron that is seen for the first time begins now: it has missed nothing.
--
-- `declared`: the time zone and the expression by which the caller ticks it, for people; "": unknown.
--
-- ARGV     name declared clock
-- RETURNS  ok last now | uninitialised
-- FLAGS    allow-oom

local DAY = 86400000
local crons = hash(keys.crons)
local last = number(crons, name)
-- A tick this far ahead was set by a clock that has been corrected since: waiting for it would stop the cron. A clock that was set
-- back by less is waited for, so that no tick comes twice.
if not last or last > now + DAY then
  last = now
  put(crons, name, int(now))
end
local schedules = hash(keys.schedules)
if declared ~= "" and get(schedules, name) ~= declared then put(schedules, name, declared) end
commit()
return {answer = "ok", last = last, now = now}
