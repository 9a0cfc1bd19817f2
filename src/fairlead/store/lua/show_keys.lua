-- API keys with what is known of them. Without an id: a page of all, in no order, from a cursor on, which is 0 at first and after
-- the last page. An unknown id is answered by nothing, at the price of a known one.
--
-- ARGV     id cursor clock
-- RETURNS  ok <now> { <id> { <field> <value>... } <when it ends> }... <next cursor> | uninitialised
-- FLAGS    allow-oom

local int = unit.int
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end

local PAGE = 128
local page = id ~= "" and {"0", {id, ""}} or call("ZSCAN", keys.keys, cursor, "COUNT", PAGE)
local list, found = {}, page[2]
for i = 1, #found, 2 do
  local record = call("HGETALL", keys.key(found[i]))
  if #record > 0 then list[#list + 1] = {found[i], record, found[i + 1]} end
end
return {"ok", int(now), list, page[1]}
