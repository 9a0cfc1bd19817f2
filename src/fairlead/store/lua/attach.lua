-- A client connects to its interactive task for `ms`, and again before they are over.
--
-- ARGV     id client ms clock
-- RETURNS  ok | taken (by another client) | not_interactive | already_finished state | unknown_task | uninitialised
-- FLAGS    allow-oom

local t = records.find(id)
if not t then return {answer = "unknown_task"} end
if not t.known.facts.interactive then return {answer = "not_interactive"} end
if t.known.state ~= "executing" then return {answer = "already_finished", state = t.known.state} end
if not sessions.attach(t, client, now + tonumber(ms)) then return {answer = "taken"} end
commit()
return {answer = "ok"}
