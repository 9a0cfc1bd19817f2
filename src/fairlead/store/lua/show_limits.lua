-- Limits with their use, and how many queued tasks and acquires wait for each: one with some of the holders of its units, or with one
-- of them, or a page of all by name.
--
-- ARGV     name lease after count clock
-- RETURNS  ok limits {name kind most used waiting room paused interval? hold?
--          slots {id units is_task holder? ends?}... more_slots}... last? (there are more after it) | unknown_limit | uninitialised
-- FLAGS    allow-oom

local get, number = hashes.get, hashes.number
local begin = acts.begin

local now = begin(clock)
if not now then return {answer = "uninitialised"} end
if name ~= "" and not limits.of(name) then return {answer = "unknown_limit"} end

local MOST_HOLDERS = 100
local MOST_PAGES = 20 -- of a hash that has room for many more fields than it has

-- A worker with its task, or whoever acquired a lease without one.
local function holder(field, units)
  local id = string.match(field, "^held:(.*)$")
  local bare = string.match(id, "^lease:(.*)$")
  local facts = bare and call("HMGET", keys.lease(bare), "holder", "until") or call("HMGET", keys.task(id), "worker", "lease_until")
  return {id = bare or id, units = tonumber(units), is_task = not bare, holder = facts[1] or nil, ends = tonumber(facts[2] or nil)}
end

-- Which of them come first is the server's affair: a limit may have any number of holders, and only so much of it is read.
local function some_holders()
  local rows, seen, cursor = {}, {}, "0"
  for _ = 1, MOST_PAGES do
    local page = call("HSCAN", keys.limit(name), cursor, "MATCH", "held:*", "COUNT", 2 * MOST_HOLDERS)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local field = page[2][i]
      if not seen[field] and #rows == MOST_HOLDERS then return rows, true end
      if not seen[field] then rows[#rows + 1] = holder(field, page[2][i + 1]) end
      seen[field] = true
    end
    if cursor == "0" then return rows, false end
  end
  return rows, true
end

-- The lease of a task, or one without a task.
local function one_holder()
  local rows = {}
  for _, field in ipairs({"held:" .. lease, "held:lease:" .. lease}) do
    local units = call("HGET", keys.limit(name), field)
    if units then rows[#rows + 1] = holder(field, units) end
  end
  return rows, false
end

local function row(one, slots, more_slots)
  local view = limits.of(one)
  local kind = get(view, "kind")
  return {
    name = one, kind = kind, most = number(view, kind == "slots" and "limit" or "burst"), used = number(view, "used") or 0,
    waiting = (number(view, "waiting") or 0) + (number(view, "waiters") or 0), room = limits.room(view, 0, true),
    paused = get(view, "paused") ~= nil, interval = number(view, "interval"), hold = get(view, "hold"),
    slots = slots, more_slots = more_slots,
  }
end

if name ~= "" then
  local holders = lease == "" and some_holders or one_holder
  return {answer = "ok", limits = {row(name, holders())}}
end
local list = {}
local found = call("ZRANGEBYLEX", keys.limits, after == "" and "-" or "(" .. after, "+", "LIMIT", 0, tonumber(count))
for i, one in ipairs(found) do list[i] = row(one, {}, false) end
return {answer = "ok", limits = list, last = #found == tonumber(count) and found[#found] or nil}
