-- Forget the dead letters whose retention is over: their records run out by themselves, their places in the list do not.
--
-- KEYS     meta
-- ARGV     clock
-- RETURNS  ok <forgotten> | uninitialised
-- FLAGS    allow-oom
-- USES     ordered begin

local AT_ONCE = 128
local now = begin(clock)
if not now then return {"uninitialised"} end
local over = up_to(ordered(dead_key), now - setting("dead_ttl"), AT_ONCE)
for _, id in ipairs(over) do remove(ordered(dead_key), id) end
commit()
return {"ok", #over}
