-- The start of every act: finish what a broken one left, read the counters and the policy, tell the time.
--
-- USES     fields

local meta = hash(meta_key)
local instant -- of this act, in ms
local tell_time = false -- somebody has to learn of the alarm

-- The instant of this act, or nil when the namespace was never opened or its data is gone.
local function begin(clock)
  if not whole(meta_key) then return nil end
  local unfinished = get(meta, "unfinished")
  if unfinished then
    for _, left in ipairs(cmsgpack.unpack(unfinished)) do pcall(call, unpack(left)) end
    call("HDEL", meta_key, "unfinished")
    meta.whole, meta.known = nil, {}
    whole(meta_key)
  end
  if not get(meta, "schema") then return nil end
  if clock ~= "" then
    instant = tonumber(clock)
  else
    local time = call("TIME")
    instant = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return instant
end

local settings = {}

-- A number of the policy, which no act but configure changes.
local function setting(name)
  local value = settings[name]
  if not value then
    value = number(meta, name)
    settings[name] = value
  end
  return value
end

local counters = {} -- those that count on in this act, until it ends

local function next_number(counter)
  local value = (counters[counter] or number(meta, counter) or 0) + 1
  counters[counter] = value
  return value
end

local function write_counters()
  for counter, value in pairs(counters) do put(meta, counter, value) end
end
on_commit(write_counters)

-- Something will change by time alone then: nobody needs to look for it before.
local function alarm_at(time)
  local alarm = number(meta, "alarm")
  if alarm and time >= alarm then return false end
  put(meta, "alarm", time)
  return true
end

-- ... and something can start then: a worker that waits has to know, for it is told nothing when that time comes.
local function start_at(time)
  if alarm_at(time) then tell_time = true end
end
