-- Limits with their use, and how many queued tasks and acquires wait for each: one with some of the holders of its units, or with one
-- of them, or a page of all by name.
--
-- ARGV     name lease after count clock
-- RETURNS  ok { <name> <waiting> <room> { <field> <value>... } { { <held field> <units> <who or ""> <until or ""> }... <1: there are more> } }...
--          <last or ""> | unknown_limit | uninitialised

local int = unit.int
local number = hashes.number
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
if name ~= "" and not limits.of(name) then return {"unknown_limit"} end

local MOST_HOLDERS = 100
local MOST_PAGES = 20 -- of a hash that has room for many more fields than it has

-- A worker with its task, or whoever acquired a lease without one.
local function holder(field, units)
  local id = string.match(field, "^held:(.*)$")
  local bare = string.match(id, "^lease:(.*)$")
  local facts = bare and call("HMGET", keys.lease(bare), "holder", "until") or call("HMGET", keys.task(id), "worker", "lease_until")
  return {field, units, facts[1] or "", facts[2] or ""}
end

-- Which of them come first is the server's affair: a limit may have any number of holders, and only so much of it is read.
local function some_holders()
  local rows, seen, cursor = {}, {}, "0"
  for _ = 1, MOST_PAGES do
    local page = call("HSCAN", keys.limit(name), cursor, "MATCH", "held:*", "COUNT", 2 * MOST_HOLDERS)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local field = page[2][i]
      if not seen[field] and #rows == MOST_HOLDERS then return {rows, 1} end
      if not seen[field] then rows[#rows + 1] = holder(field, page[2][i + 1]) end
      seen[field] = true
    end
    if cursor == "0" then return {rows, 0} end
  end
  return {rows, 1}
end

-- The lease of a task, or one without a task.
local function one_holder()
  local rows = {}
  for _, field in ipairs({"held:" .. lease, "held:lease:" .. lease}) do
    local units = call("HGET", keys.limit(name), field)
    if units then rows[#rows + 1] = holder(field, units) end
  end
  return {rows, 0}
end

local function row(one, held_by)
  local view, flat = limits.of(one), {}
  for field, value in pairs(view.known) do
    if value then
      flat[#flat + 1] = field
      flat[#flat + 1] = value
    end
  end
  return {one, (number(view, "waiting") or 0) + (number(view, "waiters") or 0), int(limits.room(view, 0, true)), flat, held_by}
end

if name ~= "" then return {"ok", {row(name, lease == "" and some_holders() or one_holder())}, ""} end
local list = {}
local found = call("ZRANGEBYLEX", keys.limits, after == "" and "-" or "(" .. after, "+", "LIMIT", 0, tonumber(count))
for i, one in ipairs(found) do list[i] = row(one, {{}, 0}) end
return {"ok", list, #found == tonumber(count) and found[#found] or ""}
