-- The recorder has stored every event up to this one: drop them.
--
-- KEYS     meta
-- ARGV     last
-- RETURNS  ok <dropped> | uninitialised
-- FLAGS    allow-oom
-- USES     begin

if not begin("") then return {"uninitialised"} end
local upto = call("XRANGE", events_key, last, "+", "COUNT", 2)
local dropped
if #upto == 0 or upto[1][1] ~= last then return {"ok", 0} end
if upto[2] then
  dropped = call("XTRIM", events_key, "MINID", upto[2][1])
else
  dropped = call("XTRIM", events_key, "MAXLEN", 0)
end
return {"ok", dropped}
