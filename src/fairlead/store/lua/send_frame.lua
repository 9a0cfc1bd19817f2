-- A frame of a client, for the handler of its interactive task.
--
-- ARGV     id frame clock
-- RETURNS  ok seq | full | not_interactive | already_finished state | unknown_task | uninitialised

local t = records.find(id)
if not t then return {answer = "unknown_task"} end
if not t.known.facts.interactive then return {answer = "not_interactive"} end
if t.known.state ~= "executing" then return {answer = "already_finished", state = t.known.state} end
local seq = sessions.keep_frame(t, frame, now)
if not seq then return {answer = "full"} end
commit()
return {answer = "ok", seq = seq}
