-- Keep a socket ticket for a while. Its text stays with the caller: only its digest comes here.
--
-- ARGV     digest holder milliseconds
-- RETURNS  ok | uninitialised

local write, commit = unit.write, acts.commit
local begin = acts.begin

if not begin("") then return {answer = "uninitialised"} end
write({"SET", keys.ticket(digest), holder, "PX", milliseconds})
commit()
return {answer = "ok"}
