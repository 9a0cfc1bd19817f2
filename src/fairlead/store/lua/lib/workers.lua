-- Workers: what they can serve, and the line of those that wait for work.

local write = unit.write
local hash, whole, get, number, put = hashes.hash, hashes.whole, hashes.get, hashes.number, hashes.put
local ordered, remove, add, first = sets.ordered, sets.remove, sets.add, sets.first
local setting = acts.setting

function workers.record(id)
  local worker = whole(keys.worker(id))
  if worker and get(worker, "state") then
    worker.id = id
    return worker
  end
end

-- It was heard of. Its record outlives it for an hour, to be asked about.
function workers.heard_of(worker, now)
  put(worker, "seen", now)
  worker.ttl = 3600000 + setting("worker_ttl")
  add(ordered(keys.workers), worker.id, now)
end

-- What a worker serves, as one text: "o" (open) or "r" (only its reserve is free), task types or "*", capabilities.
function workers.profile_of(worker, open)
  return (open and "o" or "r") .. get(worker, "types") .. ";" .. get(worker, "capabilities")
end

-- Both lists are written ",a,b,".
function workers.serves(profile, lane)
  if string.sub(profile, 1, 1) == "r" and string.sub(lane, 1, 2) ~= "0n" then return false end
  local served, offered = string.match(profile, "^.([^;]*);(.*)$")
  local task_type, required = string.match(lane, "^..:([^;]*);(.*)$")
  if served ~= "*" and not string.find(served, "," .. task_type .. ",", 1, true) then return false end
  for capability in string.gmatch(required, "[^,]+") do
    if not string.find(offered, "," .. capability .. ",", 1, true) then return false end
  end
  return true
end

function workers.not_idle(worker)
  local profile = get(worker, "idle")
  if not profile then return end
  local idlers = ordered(keys.idlers(profile))
  remove(idlers, worker.id)
  put(worker, "idle", nil)
  if not first(idlers) then put(act.idle, profile, nil) end
end

function workers.forget(worker)
  workers.not_idle(worker)
  for field in pairs(worker.known) do put(worker, field, nil) end
  remove(ordered(keys.workers), worker.id)
end

-- `takes`: the lease (ms) under which it takes what it is handed; nil: it wants to be called, and claims by itself.
function workers.set_idle(worker, open, takes, now)
  local text = workers.profile_of(worker, open)
  local profile = redis.sha1hex(text)
  add(ordered(keys.idlers(profile)), worker.id, now)
  put(act.idle, profile, text)
  put(worker, "idle", profile)
  put(worker, "takes", takes or nil)
end

-- The longest idle worker of a profile that still lives; those who died in the line are taken out of it.
function workers.next_idler(profile)
  local idlers = ordered(keys.idlers(profile))
  while true do
    local id = first(idlers)
    if not id then return put(act.idle, profile, nil) end
    local worker = workers.record(id)
    local stands_here = worker and get(worker, "idle") == profile
    if stands_here and act.instant - number(worker, "seen") <= setting("worker_ttl") then return worker end
    if stands_here then put(worker, "idle", nil) end
    remove(idlers, id)
  end
end

-- A word for a worker that waits, or will wait: a lane in which there is something to do, or what to stop.
function workers.call(id, word)
  write({"RPUSH", keys.wake(id), word})
  write({"PEXPIRE", keys.wake(id), 30000})
end

-- It drains: there is nothing to wait for any more.
function workers.stop_waiting(worker)
  if get(worker, "idle") then workers.call(worker.id, "drain") end
  workers.not_idle(worker)
end
