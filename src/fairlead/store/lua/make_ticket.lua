-- Keep a socket ticket for a while. Its text stays with the caller: only its digest comes here.
--
-- ARGV     digest holder milliseconds
-- RETURNS  ok | uninitialised

write({"SET", keys.ticket(digest), holder, "PX", milliseconds})
commit()
return {answer = "ok"}
