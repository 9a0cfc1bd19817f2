-- Limits with their use, and how many queued tasks and acquires wait for each: one with the holders of its units, or a page of all by name.
--
-- ARGV     name after count clock
-- RETURNS  ok { <name> <waiting> <room> { <field> <value>... } { <held field> <who or ""> <until or ""> }... }... <last or "">
--          | unknown_limit | uninitialised

local int = unit.int
local number = hashes.number
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
if name ~= "" and not limits.of(name) then return {"unknown_limit"} end

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

-- A page of all limits has what is known of each, without those who hold it.
local function summary(one)
  local view, flat = limits.of(one), {}
  for field, value in pairs(view.known) do
    if value then
      flat[#flat + 1] = field
      flat[#flat + 1] = value
    end
  end
  return flat
end

local function row(one, record, held_by)
  local view = limits.of(one)
  return {one, (number(view, "waiting") or 0) + (number(view, "waiters") or 0), int(limits.room(view, 0, true)), record, held_by}
end

if name ~= "" then
  local record = call("HGETALL", keys.limit(name))
  return {"ok", {row(name, record, holders(record))}, ""}
end
local list = {}
local found = call("ZRANGEBYLEX", keys.limits, after == "" and "-" or "(" .. after, "+", "LIMIT", 0, tonumber(count))
for i, one in ipairs(found) do list[i] = row(one, summary(one), {}) end
return {"ok", list, #found == tonumber(count) and found[#found] or ""}
