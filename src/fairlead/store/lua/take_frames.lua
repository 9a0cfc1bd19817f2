-- The frames of a client that the handler does not have yet, in order. `after`: the number of the last one that it has, 0 at first.
--
-- ARGV     worker holder after clock
-- RETURNS  ok frames {seq frame}... | fenced | unknown_task | uninitialised
-- FLAGS    allow-oom

local named = cmsgpack.unpack(holder)
local t = records.find(named.id)
if not t then return {answer = "unknown_task"} end
if not leases.is_held_by(t, worker, named.fence) then return {answer = "fenced"} end
local frames = sessions.frames_after(t, tonumber(after))
commit()
return {answer = "ok", frames = frames}
