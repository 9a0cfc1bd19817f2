-- Return a limit with its use, how many queued tasks and acquires wait for it, and some of the holders of its units, or one of them.
-- `scope`: the limit that this tenant means by the name, or "". `whose`: only holders of this tenant, or "".
--
-- ARGV     scope name lease whose clock
-- RETURNS  ok limit {name kind most used waiting room paused shared interval? hold?} slots {id units is_task holder? ends?}... more_slots
--          | unknown_limit | uninitialised
-- FLAGS    allow-oom

local wanted = tenants.limit_meant(scope, name)
if not limits.of(wanted) then return {answer = "unknown_limit"} end

local MOST_HOLDERS = 100
local MOST_PAGES = 20 -- of a hash that has room for many more fields than it contains

local function is_shown(id)
  if whose == "" then return true end
  local bare = string.match(id, "^lease:(.*)$")
  if bare then return string.sub(bare, 1, #scope) == scope end
  local t = records.find(id)
  return t ~= nil and t.known.facts.tenant == whose
end

-- A worker with its task, or the holder of a lease without a task.
local function holder(id, units)
  local bare = string.match(id, "^lease:(.*)$")
  local facts = bare and call("HMGET", keys.lease(bare), "holder", "until") or call("HMGET", keys.task(id), "worker", "lease_until")
  return {id = bare or id, units = tonumber(units), is_task = not bare, holder = facts[1] or nil, ends = tonumber(facts[2] or nil)}
end

-- In the order of the server: a limit may have any number of holders, and only the first pages are read.
local function some_holders()
  local rows, seen, cursor = {}, {}, "0"
  for _ = 1, MOST_PAGES do
    local page = call("HSCAN", keys.holders(wanted), cursor, "COUNT", 2 * MOST_HOLDERS)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local id = page[2][i]
      if not seen[id] and is_shown(id) then
        if #rows == MOST_HOLDERS then return rows, true end
        rows[#rows + 1] = holder(id, page[2][i + 1])
      end
      seen[id] = true
    end
    if cursor == "0" then return rows, false end
  end
  return rows, true
end

-- The lease of a task, or one without a task.
local function one_holder()
  local rows = {}
  for _, id in ipairs({lease, "lease:" .. scope .. lease}) do
    local units = call("HGET", keys.holders(wanted), id)
    if units and is_shown(id) then rows[#rows + 1] = holder(id, units) end
  end
  return rows, false
end

local slots, more_slots = (lease == "" and some_holders or one_holder)()
return {answer = "ok", limit = limits.shown(wanted), slots = slots, more_slots = more_slots}
