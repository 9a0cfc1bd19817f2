-- Workers: what they can serve, and waking exactly as many idle ones as there is new work for.
--
-- USES     queues

local idle = hash(idle_key)
local workers = ordered(workers_key)

local function worker_record(id)
  local worker = whole(worker_key(id))
  if worker and get(worker, "state") then
    worker.id = id
    return worker
  end
end

-- What a worker serves, as one text: "o" (open) or "r" (only its reserve is free), task types or "*", capabilities.
local function profile_of(worker, open)
  return (open and "o" or "r") .. get(worker, "types") .. ";" .. get(worker, "capabilities")
end

-- Both lists are written ",a,b,".
local function serves(profile, lane)
  if string.sub(profile, 1, 1) == "r" and string.sub(lane, 1, 2) ~= "0n" then return false end
  local types, offered = string.match(profile, "^.([^;]*);(.*)$")
  local task_type, required = string.match(lane, "^..:([^;]*);(.*)$")
  if types ~= "*" and not string.find(types, "," .. task_type .. ",", 1, true) then return false end
  for capability in string.gmatch(required, "[^,]+") do
    if not string.find(offered, "," .. capability .. ",", 1, true) then return false end
  end
  return true
end

local function not_idle(worker)
  local profile = get(worker, "idle")
  if not profile then return end
  local idlers = ordered(idlers_key(profile))
  remove(idlers, worker.id)
  put(worker, "idle", nil)
  if not first(idlers) then put(idle, profile, nil) end
end

local function set_idle(worker, open, now)
  local text = profile_of(worker, open)
  local profile = redis.sha1hex(text)
  add(ordered(idlers_key(profile)), worker.id, now)
  put(idle, profile, text)
  put(worker, "idle", profile)
end

local function wake_one(lane)
  for profile, text in pairs(idle.known) do
    if text and serves(text, lane) then
      local worker = whole(worker_key((first(ordered(idlers_key(profile))))))
      worker.id = string.sub(worker.key, #worker_key("") + 1)
      not_idle(worker)
      write("RPUSH", wake_key(worker.id), lane)
      write("PEXPIRE", wake_key(worker.id), 30000)
      return true
    end
  end
end

-- One idle worker for each task that entered its sub-queue in this act and can start now.
local function wake_for_entered()
  for sub, count in pairs(entered_subs) do
    for _, need in ipairs(needs_of(sub)) do
      local limit = limit_of(need.name)
      count = math.min(count, math.floor(room(limit, class_of(sub), get(limit, "hold") == sub) / need.units))
    end
    for _ = 1, count do
      if not wake_one(lane_of(sub)) then break end
    end
  end
end

-- One idle worker for each lease that ended in this act, if somebody who waited for its limit has room now.
local function wake_for_freed()
  for name, count in pairs(freed_limits) do
    for _, lot in ipairs(members(ordered(lots_key(name)))) do
      while count > 0 and get(markers, lot) and wake_one(string.match(lot, "@(.*)$")) do count = count - 1 end
    end
  end
end

local function wake_idle_workers()
  if next(entered_subs) == nil and next(freed_limits) == nil or not whole(idle_key) then return end
  wake_for_entered()
  wake_for_freed()
end

-- The end of an act that queues or frees.
local function settle_and_commit()
  settle()
  wake_idle_workers()
  commit()
end
