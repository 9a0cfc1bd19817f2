-- The memory of the server. While it is nearly full, finished tasks go early, and few unrecorded events are kept. While the server
-- may evict keys, no new task is accepted.
--
-- meta.pressed is the number of bytes that finished tasks may take meanwhile, meta.evicting the policy that evicts.

local PRESSED, RELIEVED = 0.95, 0.9 -- of maxmemory
local FEW_EVENTS = 1000

local function note(field, value)
  if get(act.meta, field) ~= value then put(act.meta, field, value) end
end

-- Returns used, most, policy; nil where this user of the server may not ask.
local function look()
  local allowed, info = pcall(call, "INFO", "memory")
  if not allowed then return nil end
  local function field(name) return string.match(info, "\n" .. name .. ":([^\r\n]*)") end
  local used = (tonumber(field("used_memory")) or 0) - (tonumber(field("mem_not_counted_for_evict")) or 0)
  return used, tonumber(field("maxmemory")) or 0, field("maxmemory_policy")
end

-- Finished tasks have to free as much as memory is over the level at which the pressure ends. Sizes are estimates: the next inspection
-- frees more if it was not enough.
local function room_for_finished(used, most)
  if most == 0 or used <= RELIEVED * most then return nil end
  if used <= PRESSED * most then return get(act.meta, "pressed") end
  return int(math.max(0, (number(act.meta, "finished_bytes") or 0) - math.ceil(used - RELIEVED * most)))
end

-- Returns used, most, policy.
function memory.inspect()
  local used, most, policy = look()
  if used then
    note("pressed", room_for_finished(used, most))
    note("evicting", policy and policy ~= "noeviction" and policy or nil)
  end
  return used, most, policy
end

-- The bytes that finished tasks may take because of that, or nil.
function memory.pressed()
  return number(act.meta, "pressed")
end

-- How many events are kept. Events without a recorder are kept only for one that may come.
function memory.most_events(most)
  return memory.pressed() and not get(act.meta, "recorded") and math.min(most, FEW_EVENTS) or most
end
