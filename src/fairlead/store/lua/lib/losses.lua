-- Lost workers (docs/scheduler.md): which of the tasks that a worker held may have killed it.

local MOST_ASKED = 16 -- workers, those seen last: of a fleet that survived, any is a witness

-- Did the lost worker of `t` hold other tasks too when the first of its leases ended? Its record keeps the answer, because its leases
-- may end in several acts. Called before the lease is dropped.
function losses.in_company(t)
  local worker = get(t, "worker")
  local known = act.lost[worker]
  if not known then
    local record = workers.record(worker)
    known = record and get(record, "lost")
    if not known then
      known = leases.running_on(worker, 0) > 1 and "in company" or "alone"
      if record then put(record, "lost", known) end
    end
    act.lost[worker] = known
  end
  return known == "in company"
end

-- Counts a run that ends with its worker, for the report on the worker, which may come later. The next sign of the worker ends the count.
function losses.count(t)
  local record = workers.record(get(t, "worker"))
  if record then change_count(record, "lost_runs", 1) end
end

-- Was the worker of `t` silent when its lease ended, while another one, registered before it fell silent, was seen?
function losses.was_outlived(t)
  local record = workers.record(get(t, "worker"))
  local seen_since = number(t, "lease_until") + setting("grace") - math.floor(setting("worker_ttl") / 2)
  if not record or number(record, "seen") >= seen_since then return false end
  for _, id in ipairs(call("ZREVRANGEBYSCORE", keys.workers, "+inf", int(seen_since), "LIMIT", 0, MOST_ASKED)) do
    local registered = number(hash(keys.worker(id)), "registered")
    if registered and registered <= number(record, "seen") then return true end
  end
  return false
end
