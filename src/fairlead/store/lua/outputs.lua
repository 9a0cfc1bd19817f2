-- The chunks of output that are kept of a task, after one that is known.
--
-- KEYS     meta
-- ARGV     id known clock
-- RETURNS  ok { <json of seq, fence and chunk> }... | unknown_task | uninitialised
-- FLAGS    allow-oom
-- USES     begin

if not begin(clock) then return {"uninitialised"} end
local t = hash(task_key(id))
if not get(t, "state") then return {"unknown_task"} end
local first_kept = (number(t, "emitted") or 0) - call("LLEN", output_key(id)) + 1
return {"ok", call("LRANGE", output_key(id), math.max(0, tonumber(known) + 1 - first_kept), -1)}
