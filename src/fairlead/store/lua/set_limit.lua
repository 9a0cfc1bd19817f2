-- Define or change a limit; takes effect at once. A limit lowered below its use gives nothing until it is below again.
--
-- KEYS     meta
-- ARGV     name kind limit interval burst clock
-- RETURNS  ok | uninitialised
-- USES     defining waking

local now = begin(clock)
if not now then return {"uninitialised"} end

define_limit(name, kind, limit, interval, burst)
wake_idle_workers()
commit()
return {"ok"}
