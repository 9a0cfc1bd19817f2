-- Limits with their use, and how many queued tasks need each. Without a name: all of them; with one: also who holds it.
--
-- ARGV     name clock
-- RETURNS  ok { <name> <waiting> <room> { <field> <value>... } { <held field> <who or ""> <until or ""> }... }...
--          | unknown_limit | uninitialised

local int = unit.int
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
if name ~= "" and not limits.of(name) then return {"unknown_limit"} end

local waiting = {}
for _, sub in ipairs(call("HKEYS", keys.home)) do
  local depth = call("ZCARD", keys.queue(sub))
  for _, need in ipairs(limits.needs_of(sub)) do waiting[need.name] = (waiting[need.name] or 0) + depth end
end

local MOST_HOLDERS = 1000

-- Of the first of those who hold it: a worker with its task, or whoever acquired a lease without one.
local function holders(record)
  local rows = {}
  for i = 1, #record, 2 do
    local id = string.match(record[i], "^held:(.*)$")
    if id and #rows < MOST_HOLDERS then
      local bare = string.match(id, "^lease:(.*)$")
      local facts = bare and call("HMGET", keys.lease(bare), "holder", "until") or call("HMGET", keys.task(id), "worker", "lease_until")
      rows[#rows + 1] = {record[i], facts[1] or "", facts[2] or ""}
    end
  end
  return rows
end

local list = {}
for _, one in ipairs(name ~= "" and {name} or call("ZRANGE", keys.limits, 0, 1023)) do
  local record = call("HGETALL", keys.limit(one))
  list[#list + 1] = {one, waiting[one] or 0, int(limits.room(limits.of(one), 0, true)), record, name ~= "" and holders(record) or {}}
end
return {"ok", list}
