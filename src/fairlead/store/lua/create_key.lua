-- Create an API key. Its secret stays with the caller: the store only has its digest.
--
-- ARGV     id digest facts clock
-- RETURNS  ok now fields | taken | uninitialised

if access.record(id) then return {answer = "taken"} end
local record = cmsgpack.unpack(facts)
record.digest = digest
local made = access.issue(id, record, now)
commit()
return {answer = "ok", now = now, fields = made}
