-- Leases: the right to run, and the units that go with it.

function leases.lease_until(holder, ends)
  local freed_at = ends + setting("grace")
  add(ordered(keys.leases), holder, freed_at)
  alarm_at(freed_at)
end

-- In ms: what the worker asks for, or what is declared of its type if that is longer.
function leases.length(t, lease)
  return math.max(lease, tonumber(t.known.facts.lease) or 0)
end

-- Not beyond its deadline. Returns the new end.
function leases.prolong(t, lease, now)
  local ends = math.min(now, number(t, "deadline")) + leases.length(t, lease)
  put(t, "lease_until", ends)
  leases.lease_until(t.id, ends)
  return ends
end

-- Of a task that starts on a worker. The caller sets the alarm once for all that start together.
function leases.begin_lease(t, freed_at, running, rank)
  insert(ordered(keys.leases), t.id, freed_at)
  insert(running, t.id, rank)
  local begun = act.begun[t.known.worker] or {all = 0, not_high = 0}
  act.begun[t.known.worker] = begun
  begun.all, begun.not_high = begun.all + 1, begun.not_high + rank
end

-- It fails when it was not started by then.
function leases.wait_at_most_until(t, instant)
  put(t, "wait_until", instant)
  add(ordered(keys.waits), t.id, instant)
  alarm_at(instant)
end

-- It has been started: however that run ends, it never again fails because it waited.
function leases.wait_is_over(t)
  put(t, "wait_until", nil)
  remove(ordered(keys.waits), t.id)
end

-- Does the caller name the lease of `t` that was given this fence? A worker and a fence must both be right; either may be left out.
function leases.is_named_by(t, worker, fence, given)
  local is_holder = worker == t.known.worker
  if not fence then return is_holder end
  return fence == given and (is_holder or worker == "")
end

-- Does the caller hold the run of `t`?
function leases.is_held_by(t, worker, fence)
  return t.known.state == "executing" and leases.is_named_by(t, worker, fence, t.known.fence)
end

-- No worker holds task `t` any more: its units and its slot in the worker are free.
function leases.drop(t)
  local known = t.known
  local worker, needed = known.worker, known.facts.limits
  remove(ordered(keys.leases), t.id)
  if needed then limits.free(t.id, limits.needs(needed)) end
  if known.facts.elastic then tiers.end_run(t) end
  if known.facts.interactive then sessions.end_run(t) end
  local gone = act.dropped[worker]
  if not gone then
    gone = {all = 0, not_high = 0, running = ordered(keys.running(worker))}
    act.dropped[worker] = gone
  end
  remove(gone.running, t.id)
  presence.leave(t, presence.HELD)
  gone.all = gone.all + 1
  if tonumber(known.facts.priority) ~= 0 then gone.not_high = gone.not_high + 1 end
  if known.stopping then
    put(t, "stopping", nil)
    retention.keep_task(t) -- its record was needed until now
  end
  if known.wait_until then put(t, "wait_until", nil) end -- of a run that an older version started
end

local NOBODY = {all = 0, not_high = 0}

-- How many tasks a worker holds now, and how many of them are not base high; without a reserve all count alike.
function leases.running_on(worker, reserve)
  local gone, begun = act.dropped[worker] or NOBODY, act.begun[worker] or NOBODY
  local all = call("ZCARD", keys.running(worker)) - gone.all + begun.all
  return all, reserve > 0 and call("ZCOUNT", keys.running(worker), 1, 1) - gone.not_high + begun.not_high or all
end

-- A lease without a task; nil while it is waiting.
function leases.bare(id)
  local lease = whole(keys.lease(id))
  return lease and get(lease, "fence") and lease or nil
end

-- The one that a caller names; nil: there is none. Only if it is of this limit: a caller that uses force may have mixed up two ids.
function leases.named(holder)
  local lease = leases.bare(holder.id)
  if not lease or holder.fence and get(lease, "fence") ~= holder.fence then return nil end
  return tenants.is_called(get(lease, "limit"), holder.scope, holder.limit) and lease or nil
end

function leases.drop_bare(id, lease)
  remove(ordered(keys.leases), "lease:" .. id)
  limits.free("lease:" .. id, limits.needs(get(lease, "limit") .. "=" .. get(lease, "units")))
  for field in pairs(lease.known) do put(lease, field, nil) end
end
