-- Forget what has ended: of that which is over its bounds the oldest, and of that whose retention is over the places in the lists, for
-- only records run out by themselves.
--
-- ARGV     clock
-- RETURNS  ok forgotten (of one kind, at most) | uninitialised
-- FLAGS    allow-oom

local AT_ONCE = 128
local dropped = retention.drop(AT_ONCE)
local passed = retention.pass(now, AT_ONCE)
commit()
return {answer = "ok", forgotten = math.max(dropped, passed)}
