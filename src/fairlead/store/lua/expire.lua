-- End the leases that ran out: a lost worker is a crash, a run past its deadline a timeout.
--
-- KEYS     meta
-- ARGV     clock
-- RETURNS  ok <leases ended> | uninitialised
-- FLAGS    allow-oom
-- USES     time workers

local now = begin(clock)
if not now then return {"uninitialised"} end

local count = end_leases(now)
-- workers silent for an hour are forgotten; their records run out by themselves
write({"ZREMRANGEBYSCORE", workers_key, "-inf", now - 3600000})
write({"ZREMRANGEBYSCORE", dead_key, "-inf", now - setting("dead_ttl")})
settle_and_commit()
return {"ok", count}
