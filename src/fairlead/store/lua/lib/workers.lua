-- Workers: what they can serve, and the line of those that wait for work.
--
-- USES     queues

local idle = hash(idle_key)

local function worker_record(id)
  local worker = whole(worker_key(id))
  if worker and get(worker, "state") then
    worker.id = id
    return worker
  end
end

-- It was heard of. Its record outlives it for an hour, to be asked about.
local function heard_of(worker, now)
  put(worker, "seen", now)
  worker.ttl = 3600000 + setting("worker_ttl")
  add(ordered(workers_key), worker.id, now)
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

local function forget_worker(worker)
  not_idle(worker)
  for field in pairs(worker.known) do put(worker, field, nil) end
  remove(ordered(workers_key), worker.id)
end

-- `takes`: the lease (ms) under which it takes what it is handed; nil: it wants to be called, and claims by itself.
local function set_idle(worker, open, takes, now)
  local text = profile_of(worker, open)
  local profile = redis.sha1hex(text)
  add(ordered(idlers_key(profile)), worker.id, now)
  put(idle, profile, text)
  put(worker, "idle", profile)
  put(worker, "takes", takes or nil)
end

-- The longest idle worker of a profile that still lives; those who died in the line are taken out of it.
local function next_idler(profile)
  local idlers = ordered(idlers_key(profile))
  while true do
    local id = first(idlers)
    if not id then return put(idle, profile, nil) end
    local worker = worker_record(id)
    local stands_here = worker and get(worker, "idle") == profile
    if stands_here and instant - number(worker, "seen") <= setting("worker_ttl") then return worker end
    if stands_here then put(worker, "idle", nil) end
    remove(idlers, id)
  end
end

-- A word for a worker that waits, or will wait: a lane in which there is something to do, or what to stop.
local function call_worker(id, word)
  write({"RPUSH", wake_key(id), word})
  write({"PEXPIRE", wake_key(id), 30000})
end

-- It drains: there is nothing to wait for any more.
local function stop_waiting(worker)
  if get(worker, "idle") then call_worker(worker.id, "drain") end
  not_idle(worker)
end
