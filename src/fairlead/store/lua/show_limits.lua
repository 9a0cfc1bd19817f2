-- Limits with their use, and how many queued tasks need each. Without a name: all of them.
--
-- KEYS     meta
-- ARGV     name clock
-- RETURNS  ok { <name> <waiting> <room> { <field> <value>... } }... | unknown_limit | uninitialised
-- USES     limits

local now = begin(clock)
if not now then return {"uninitialised"} end
if name ~= "" and not limit_of(name) then return {"unknown_limit"} end

local waiting = {}
for _, sub in ipairs(call("HKEYS", home_key)) do
  local depth = call("ZCARD", queue_key(sub))
  for _, need in ipairs(needs_of(sub)) do waiting[need.name] = (waiting[need.name] or 0) + depth end
end
local list = {}
for _, one in ipairs(name ~= "" and {name} or call("ZRANGE", limits_key, 0, 1023)) do
  list[#list + 1] = {one, waiting[one] or 0, int(room(limit_of(one), 0, true)), call("HGETALL", limit_key(one))}
end
return {"ok", list}
