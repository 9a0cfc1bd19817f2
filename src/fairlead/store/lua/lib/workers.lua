-- Workers: their records, and the lines of idle workers.
--
-- An idle worker is in the line of its profile, by the instant of its last sign. Each gives one within seconds, so workers that died
-- in the line are too old to be found.

local HOUR = 3600000
local LOOKED_UP = 16 -- idle workers of a line

function workers.record(id)
  local worker = whole(keys.worker(id))
  if worker and get(worker, "state") then
    worker.id = id
    return worker
  end
end

-- It was seen. Its record outlives it for an hour, so that it can be looked up.
function workers.mark_seen(worker, now)
  put(worker, "seen", now)
  if get(worker, "lost") then -- it was not dead
    put(worker, "lost", nil)
    put(worker, "lost_runs", nil)
  end
  worker.ttl = HOUR + setting("worker_ttl")
  add(ordered(keys.workers), worker.id, now)
  local line = get(worker, "idle")
  if line then add(ordered(keys.idlers(line)), worker.id, now) end
end

-- It no longer waits. If it watched the alarm, another one has to.
function workers.not_idle(worker)
  local line = get(worker, "idle")
  if not line then return end
  remove(ordered(keys.idlers(line)), worker.id)
  put(worker, "idle", nil)
  change_count(hash(keys.idle), line, -1)
  change_count(act.meta, "idle_workers", -1)
  if get(act.meta, "watcher") == worker.id then
    put(act.meta, "watcher", nil)
    act.announce_alarm = true
  end
end

function workers.forget(worker)
  workers.not_idle(worker)
  profiles.unlist(worker)
  for field in pairs(worker.known) do put(worker, field, nil) end
  remove(ordered(keys.workers), worker.id)
end

-- Its record has expired: removes it from every line, count and list.
function workers.forget_lost(id)
  local idle = whole(keys.idle)
  for line in pairs(idle and idle.known or NONE) do
    if call("ZSCORE", keys.idlers(line), id) then
      remove(ordered(keys.idlers(line)), id)
      change_count(idle, line, -1)
      change_count(act.meta, "idle_workers", -1)
    end
  end
  profiles.uncount(id)
  remove(ordered(keys.workers), id)
end

-- `takes`: the lease (ms) under which it takes a task that it is handed; nil: it is woken, and claims by itself.
function workers.set_idle(worker, open, takes, now)
  local line = names.idle_line(get(worker, "profile"), open)
  add(ordered(keys.idlers(line)), worker.id, now)
  change_count(hash(keys.idle), line, 1)
  change_count(act.meta, "idle_workers", 1)
  put(worker, "idle", line)
  put(worker, "takes", takes or nil)
end

-- Is any worker idle? Then the lines are loaded.
function workers.anybody_idle()
  return get(act.meta, "idle_workers") and whole(keys.idle) ~= nil
end

-- A single idle worker watches the alarm. Is it this one?
function workers.watches(worker, now)
  local watcher = get(act.meta, "watcher")
  if watcher and watcher ~= worker.id then
    local other = workers.record(watcher)
    if other and get(other, "idle") and now - number(other, "seen") <= setting("worker_ttl") / 2 then return false end
  end
  put(act.meta, "watcher", worker.id)
  return true
end

-- The worker that has waited longest in a line, of those that live.
function workers.next_idler(line)
  local set, silent = ordered(keys.idlers(line)), act.instant - setting("worker_ttl")
  local found = act.idlers[line]
  while true do
    if not found then
      found = call("ZRANGEBYSCORE", set.key, int(silent), "+inf", "LIMIT", act.idlers_read[line] or 0, LOOKED_UP)
      act.idlers_read[line] = (act.idlers_read[line] or 0) + #found
    end
    act.idlers[line] = found
    for _, id in ipairs(found) do
      local worker = not set.removed[id] and workers.record(id)
      if worker and get(worker, "idle") == line then return worker end
    end
    if #found < LOOKED_UP then return nil end
    found = nil
  end
end

-- A message for a worker that waits, or will wait: a lane in which there is something to do, or what to stop.
function workers.call(id, word)
  write({"RPUSH", keys.wake(id), word})
  write({"PEXPIRE", keys.wake(id), 30000})
end

-- It drains: it is given no more tasks, and has nothing to wait for.
function workers.drain(worker)
  if get(worker, "idle") then workers.call(worker.id, "drain") end
  workers.not_idle(worker)
  profiles.unlist(worker)
  put(worker, "state", "draining")
end
