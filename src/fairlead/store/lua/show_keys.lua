-- API keys with what is known of them. Without an id: all of them, those that end first at first. An unknown id is answered
-- by nothing, at the price of a known one.
--
-- ARGV     id clock
-- RETURNS  ok <now> { <id> { <field> <value>... } }... | uninitialised
-- FLAGS    allow-oom

local int = unit.int
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
local list = {}
for _, one in ipairs(id ~= "" and {id} or call("ZRANGE", keys.keys, 0, -1)) do
  local record = call("HGETALL", keys.key(one))
  if #record > 0 then list[#list + 1] = {one, record} end
end
return {"ok", int(now), list}
