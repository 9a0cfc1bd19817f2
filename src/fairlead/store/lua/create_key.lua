-- Make an API key. Its secret stays with the caller: only the digest of it comes here.
--
-- ARGV     id digest facts clock
-- RETURNS  ok now fields | taken | uninitialised

if access.record(id) then return {answer = "taken"} end
local record = cmsgpack.unpack(facts)
record.digest = digest
local made = access.issue(id, record, now)
commit()
return {answer = "ok", now = now, fields = made}
