-- Keep a socket ticket for a while. Its text stays with the caller: the store only has its digest.
--
-- ARGV     digest holder milliseconds
-- RETURNS  ok | uninitialised

write({"SET", keys.ticket(digest), holder, "PX", milliseconds})
commit()
return {answer = "ok"}
