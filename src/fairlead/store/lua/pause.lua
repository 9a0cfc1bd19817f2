-- Pause or resume a limit or a task type. Running tasks are not affected.
--
-- ARGV     what name paused clock
-- RETURNS  ok | unknown_limit | uninitialised
-- FLAGS    allow-oom

local pauses = paused == "1"

local function look_again(limit_name)
  holds.review(now)
  limits.touch(limit_name)
  queues.reindex()
end

local function pause_limit()
  local view = limits.of(name)
  put(view, "paused", pauses and "1" or nil)
  look_again(name)
  act.freed[name] = math.max(0, limits.room(view, 0, true))
end

-- Its waiting tasks are parked when a claim meets them, and shown again, all at once, when the type is resumed.
local function pause_type()
  local paused_types, limit_name = whole(keys.paused) or hash(keys.paused), names.type_limit(name)
  put(paused_types, name, pauses and int(now) or nil)
  local count = 0
  for _, since in pairs(paused_types.known) do count = count + (since and 1 or 0) end
  put(act.meta, "paused_types", count > 0 and count or nil)
  look_again(limit_name)
  act.freed[limit_name] = pauses and 0 or 1000
end

if what == "limit" and not limits.of(name) then return {answer = "unknown_limit"} end
if what == "limit" then pause_limit() else pause_type() end
waking.wake()
commit()
return {answer = "ok"}
