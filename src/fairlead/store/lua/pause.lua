-- Pause a limit or a task type, or let it go on. Nothing that runs is touched.
--
-- ARGV     what name paused clock
-- RETURNS  ok | unknown_limit | uninitialised

local int, commit = unit.int, acts.commit
local hash, whole, get, put = hashes.hash, hashes.whole, hashes.get, hashes.put
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
local pauses = paused == "1"

local function pause_limit()
  local view = limits.of(name)
  put(view, "paused", pauses and "1" or nil)
  holds.end_impossible()
  limits.touch(name)
  queues.settle()
  act.freed_limits[name] = math.max(0, limits.room(view, 0, true))
end

local function pause_type()
  local paused_types = whole(keys.paused) or hash(keys.paused)
  put(paused_types, name, pauses and int(now) or nil)
  local count = 0
  for _, since in pairs(paused_types.known) do count = count + (since and 1 or 0) end
  put(act.meta, "paused_types", count > 0 and count or nil)
  holds.end_impossible()
  queues.settle()
  -- what waited for the type to go on is as good as new
  for sub in pairs(not pauses and whole(keys.home) and act.homes.known or {}) do
    if get(act.homes, sub) and string.match(sub, "^..:([^;]*);") == name then act.entered_subs[sub] = call("ZCARD", keys.queue(sub)) end
  end
end

if what == "limit" and not limits.of(name) then return {"unknown_limit"} end
if what == "limit" then pause_limit() else pause_type() end
waking.wake_idle()
commit()
return {"ok"}
