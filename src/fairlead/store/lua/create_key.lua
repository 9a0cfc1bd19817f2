-- Make an API key. Its secret stays with the caller: only the digest of it comes here.
--
-- KEYS     meta
-- ARGV     id digest facts clock
-- RETURNS  ok <now> { <field> <value>... } | taken | uninitialised
-- USES     access

local now = begin(clock)
if not now then return {"uninitialised"} end
if key_record(id) then return {"taken"} end
local record = cmsgpack.unpack(facts)
record.digest = digest
local made = issue(id, record, now)
commit()
return {"ok", int(now), key_fields(made)}
