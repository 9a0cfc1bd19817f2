-- Use up a socket ticket: of several callers with the same ticket, only the first gets its holder.
--
-- ARGV     digest
-- RETURNS  ok holder? | uninitialised
-- FLAGS    allow-oom

local holder = call("GET", keys.ticket(digest))
if not holder then return {answer = "ok"} end
write({"UNLINK", keys.ticket(digest)})
commit()
return {answer = "ok", holder = holder}
