-- When a cron last ticked, and what time it is. One that is seen for the first time begins now: it has missed nothing.
--
-- ARGV     name clock
-- RETURNS  ok last now | uninitialised
-- FLAGS    allow-oom

local DAY = 86400000
local crons = hash(keys.crons)
local last = number(crons, name)
-- So far ahead is only what was set by a clock that has been put right since: waiting for it would stop the cron. A clock
-- that was put back by less is waited for, so that no tick comes twice.
if not last or last > now + DAY then
  last = now
  put(crons, name, int(now))
end
commit()
return {answer = "ok", last = last, now = now}
