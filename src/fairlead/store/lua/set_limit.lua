-- Define or change a limit; takes effect at once. A limit lowered below its use gives nothing until it is below again.
--
-- ARGV     name kind limit interval burst clock
-- RETURNS  ok | uninitialised
-- FLAGS    allow-oom

local commit = acts.commit
local begin = acts.begin

local now = begin(clock)
if not now then return {answer = "uninitialised"} end

limits.define(name, kind, limit, interval, burst)
waking.wake()
commit()
return {answer = "ok"}
