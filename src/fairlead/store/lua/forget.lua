-- Forget what has ended: the oldest when there are more than the bounds allow, and list entries whose retention is over, because
-- only records expire by themselves.
--
-- ARGV     clock
-- RETURNS  ok forgotten (of one kind, at most) | uninitialised
-- FLAGS    allow-oom

local AT_ONCE = 128
local dropped = retention.drop(AT_ONCE)
local passed = retention.pass(now, AT_ONCE)
commit()
return {answer = "ok", forgotten = math.max(dropped, passed)}
