-- Make an API key. Its secret stays with the caller: only the digest of it comes here.
--
-- ARGV     id digest facts clock
-- RETURNS  ok <now> { <field> <value>... } | taken | uninitialised

local int, commit = unit.int, acts.commit
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
if access.record(id) then return {"taken"} end
local record = cmsgpack.unpack(facts)
record.digest = digest
local made = access.issue(id, record, now)
commit()
return {"ok", int(now), access.key_fields(made)}
