-- Use up a ticket: of several callers with the same one, only the first gets its holder. With `keep` it is only read: the session of a
-- browser, which ends by itself.
--
-- ARGV     digest keep clock
-- RETURNS  ok holder? ends? | uninitialised
-- FLAGS    allow-oom

local holder = call("GET", keys.ticket(digest))
if not holder then return {answer = "ok"} end
local ends = now + call("PTTL", keys.ticket(digest))
if tonumber(keep) == 0 then write({"UNLINK", keys.ticket(digest)}) end
commit()
return {answer = "ok", holder = holder, ends = ends}
