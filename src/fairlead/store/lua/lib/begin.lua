-- The start of every act: finish what a broken one left, read the counters and the policy, tell the time.
--
-- USES     unit hashes

local meta = hash(meta_key)

-- The instant of this act in ms, or nil when the namespace was never opened or its data is gone.
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
  if clock ~= "" then return tonumber(clock) end
  local time = call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function next_number(counter)
  local value = (number(meta, counter) or 0) + 1
  put(meta, counter, value)
  return value
end

-- Something will change by time alone at `instant`: nobody needs to look for it before.
local function alarm_at(instant)
  local alarm = number(meta, "alarm")
  if not alarm or instant < alarm then put(meta, "alarm", instant) end
end
