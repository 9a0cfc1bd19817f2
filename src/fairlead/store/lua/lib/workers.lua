-- Workers: what they can serve, and waking exactly as many idle ones as there is new work for.
--
-- USES     queues leases

local idle, workers = hash(idle_key), ordered(workers_key)

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

local function forget_worker(worker)
  not_idle(worker)
  for field in pairs(worker.known) do put(worker, field, nil) end
  remove(workers, worker.id)
end

local function set_idle(worker, open, now)
  local text = profile_of(worker, open)
  local profile = redis.sha1hex(text)
  add(ordered(idlers_key(profile)), worker.id, now)
  put(idle, profile, text)
  put(worker, "idle", profile)
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

-- Without a lane: whoever waits longest of those who do the same.
local function wake_one(lane)
  for profile, text in pairs(idle.known) do
    local worker = text and (not lane or serves(text, lane)) and next_idler(profile)
    if worker then
      not_idle(worker)
      call_worker(worker.id, lane or "alarm")
      return true
    end
  end
end

-- Wakes idle workers for up to `count` tasks of a sub-queue, as far as its limits have room that no other was woken for.
local function wake_for(sub, count, promised)
  if is_paused(sub) then return 0 end
  local woken = 0
  while woken < count do
    for _, need in ipairs(needs_of(sub)) do
      local limit = limit_of(need.name)
      local left = room(limit, class_of(sub), get(limit, "hold") == sub) - (promised[need.name] or 0)
      if left < need.units then return woken end
    end
    if not wake_one(lane_of(sub)) then return woken end
    for _, need in ipairs(needs_of(sub)) do promised[need.name] = (promised[need.name] or 0) + need.units end
    woken = woken + 1
  end
  return woken
end

-- One idle worker for each lease that ended in this act, if a task that needs its limit can start now: of all sub-queues, for
-- nobody may have looked at one since the limit got full.
local function wake_for_freed(name, count, promised)
  for sub, home in pairs(whole(home_key) and homes.known or NONE) do
    if count <= 0 then return end
    for _, need in ipairs(home and needs_of(sub) or NONE) do
      if need.name == name then
        local waiting = call("ZCARD", queue_key(sub)) - (entered_subs[sub] or 0)
        count = count - wake_for(sub, math.min(count, waiting), promised)
      end
    end
  end
end

-- One for each task that entered its sub-queue in this act and can start now, and one for each unit that got free; or one
-- that finds nothing, but learns from its claim until when there is nothing.
local function wake_idle_workers()
  if next(entered_subs) == nil and next(freed_limits) == nil and not tell_time or not whole(idle_key) then return end
  local promised, woken = {}, 0 -- limit -> units that workers were woken for
  for sub, count in pairs(entered_subs) do woken = woken + wake_for(sub, count, promised) end
  for name, count in pairs(freed_limits) do wake_for_freed(name, count, promised) end
  if tell_time and woken == 0 then wake_one() end
end

-- Who was full, or waits for high alone, looks again when a place of it is free: what waits was announced before, to others.
local function wake_the_freed()
  for id, freed in pairs(dropped) do
    local worker = load_fields(hash(worker_key(id)), {"idle", "full"})
    local profile = freed.not_high > 0 and get(worker, "idle")
    if get(worker, "full") or profile and string.sub(get(idle, profile) or "", 1, 1) == "r" then
      worker.id = id
      not_idle(worker)
      put(worker, "full", nil)
      call_worker(id, "room")
    end
  end
end

-- The end of an act that queues or frees.
local function settle_and_commit()
  settle()
  wake_the_freed()
  wake_idle_workers()
  commit()
end
