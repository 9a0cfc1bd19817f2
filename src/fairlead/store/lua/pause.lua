-- Pause a limit or a task type, or let it go on. Nothing that runs is touched.
--
-- KEYS     meta
-- ARGV     what name paused clock
-- RETURNS  ok | unknown_limit | uninitialised
-- USES     holds choose waking

local now = begin(clock)
if not now then return {"uninitialised"} end
local pauses = paused == "1"

local function pause_limit()
  local view = limit_of(name)
  put(view, "paused", pauses and "1" or nil)
  end_impossible_holds()
  touch_limit(name)
  settle()
  freed_limits[name] = math.max(0, room(view, 0, true))
end

local function pause_type()
  local types = whole(paused_key) or hash(paused_key)
  put(types, name, pauses and int(now) or nil)
  local count = 0
  for _, since in pairs(types.known) do count = count + (since and 1 or 0) end
  put(meta, "paused_types", count > 0 and count or nil)
  end_impossible_holds()
  settle()
  -- what waited for the type to go on is as good as new
  for sub in pairs(not pauses and whole(home_key) and homes.known or {}) do
    if get(homes, sub) and string.match(sub, "^..:([^;]*);") == name then entered_subs[sub] = call("ZCARD", queue_key(sub)) end
  end
end

if what == "limit" and not limit_of(name) then return {"unknown_limit"} end
if what == "limit" then pause_limit() else pause_type() end
wake_idle_workers()
commit()
return {"ok"}
