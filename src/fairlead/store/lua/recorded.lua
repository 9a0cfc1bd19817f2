-- The recorder has stored every event up to the end of this entry: drop them.
--
-- KEYS     meta
-- ARGV     last
-- RETURNS  ok <dropped> | uninitialised
-- FLAGS    allow-oom
-- USES     begin

if not begin("") then return {"uninitialised"} end
if #call("XRANGE", events_key, last, last) == 0 then return {"ok", 0} end -- it was dropped before, or never was
local from, count = string.match(last, "^(%d+)-(%d+)$")
local upto, gone = tonumber(from) + tonumber(count) - 1, number(meta, "events_gone") or 0
put(meta, "events_gone", upto)
write({"XTRIM", events_key, "MINID", int(upto + 1)})
commit()
return {"ok", upto - gone}
