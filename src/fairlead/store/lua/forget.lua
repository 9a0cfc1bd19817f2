-- Forget the dead letters whose retention is over: their records run out by themselves, their places in the list do not.
--
-- ARGV     clock
-- RETURNS  ok <forgotten> | uninitialised
-- FLAGS    allow-oom

local ordered, remove, up_to = sets.ordered, sets.remove, sets.up_to
local setting, begin = acts.setting, acts.begin
local commit = acts.commit

local AT_ONCE = 128
local now = begin(clock)
if not now then return {"uninitialised"} end
local over = up_to(ordered(keys.dead), now - setting("dead_ttl"), AT_ONCE)
for _, id in ipairs(over) do remove(ordered(keys.dead), id) end
commit()
return {"ok", #over}
