-- Leases: the right to run, and the units that go with it.
--
-- USES     queues

local leases = ordered(leases_key)
local dropped = {} -- worker -> {all, not_high}: its tasks whose leases ended in this act

-- What acts ask of a task at once; of a record these are always `known`. Anything else is read when it is asked for, and its
-- content, which may be large, by those who want it.
local TASK_FIELDS = {
  "state", "worker", "fence", "stopping", "reported", "deadline", "started", "type", "priority", "limits", "place", "fair",
  "cost", "weight", "emitted", "told", "tenant", "user_id", "job_id", "step", "ahead", "wait_until", "retries",
  "crashes",
}

local function task_record(id)
  local t = hash(task_key(id))
  if not t.id then
    t.id = id
    if not t.whole then load_fields(t, TASK_FIELDS) end
  end
  return get(t, "state") and t or nil
end

local function lease_until(holder, ends)
  local freed_at = ends + setting("grace")
  add(leases, holder, freed_at)
  alarm_at(freed_at)
end

-- Not beyond its deadline. Until when it is leased now.
local function prolong(t, lease, now)
  local ends = math.min(now, number(t, "deadline")) + lease
  put(t, "lease_until", ends)
  lease_until(t.id, ends)
  return ends
end

-- Of a task that starts on a worker. When the alarm is due the caller says once for all that start together.
local function begin_lease(id, freed_at, running, rank)
  insert(leases, id, freed_at)
  insert(running, id, rank)
end

-- It fails when nobody has started it by then.
local function wait_at_most_until(t, instant)
  put(t, "wait_until", instant)
  add(ordered(waits_key), t.id, instant)
  alarm_at(instant)
end

-- May the caller with this fence (or, without one, this worker) speak for the run of `t`?
local function is_held_by(t, worker, fence)
  local known = t.known
  if known.state ~= "executing" then return false end
  if fence then return fence == known.fence end
  return worker == known.worker
end

-- Task `t` is in nobody's hands any more: its units and its place in the worker are free.
local function drop_lease(t)
  local known = t.known
  local worker, limits = known.worker, known.limits
  remove(leases, t.id)
  if limits then free_units(t.id, needs(limits)) end
  local gone = dropped[worker]
  if not gone then
    gone = {all = 0, not_high = 0, running = ordered(running_key(worker))}
    dropped[worker] = gone
  end
  remove(gone.running, t.id)
  gone.all = gone.all + 1
  if known.priority ~= "0" then gone.not_high = gone.not_high + 1 end
  if known.stopping then put(t, "stopping", nil) end
end

-- How many tasks a worker holds now, and how many of them are not base high; without a reserve all count alike.
local function running_on(worker, reserve)
  local gone = dropped[worker] or {all = 0, not_high = 0}
  local all = call("ZCARD", running_key(worker)) - gone.all
  return all, reserve > 0 and call("ZCOUNT", running_key(worker), 1, 1) - gone.not_high or all
end

-- The record of a leased task is gone (it was cancelled, and nobody looked before its retention ended): look everywhere.
local function drop_orphan(id)
  remove(leases, id)
  for _, name in ipairs(members(ordered(limits_key))) do free_units(id, {{name = name}}) end
  for _, worker in ipairs(members(ordered(workers_key))) do remove(ordered(running_key(worker)), id) end
end

-- A lease without a task.
local function bare_lease(id)
  local lease = whole(lease_key(id))
  return lease and get(lease, "limit") and lease or nil
end

local function drop_bare_lease(id, lease)
  remove(leases, "lease:" .. id)
  free_units("lease:" .. id, needs(get(lease, "limit") .. "=" .. get(lease, "units")))
  for field in pairs(lease.known) do put(lease, field, nil) end
end
