-- Do what time alone does to waiting tasks: ends of delays and of patience, ageing, refilled rate limits.
--
-- KEYS     meta
-- ARGV     clock
-- RETURNS  ok <most of one kind that were due> | uninitialised
-- FLAGS    allow-oom
-- USES     time waking

local now = begin(clock)
if not now then return {"uninitialised"} end

local due = promote_due(now)
settle_and_commit()
return {"ok", due}
