-- Cancelling a task. One that runs is cancelled at once; its units are free when its worker confirms or its lease ends.

-- The worker that must stop, or nil.
function cancels.cancel(t, now)
  local state, stopping = get(t, "state"), nil
  if state == "executing" then
    stopping = get(t, "worker")
    if t.known.facts.elastic then tiers.withdraw(t) end
    put(t, "stopping", get(t, "fence"))
    put(t, "fence", next_fence()) -- whatever the worker reports from now on is stale
  elseif state == "queued" then
    queues.dequeue(t)
  else
    backlog.end_delay(t)
  end
  remove(ordered(keys.waits), t.id)
  endings.finish(t, "cancel", "cancelled", now)
  if state == "executing" then
    -- the record must outlive the lease: it says what to free
    t.ttl = math.max(t.ttl, number(t, "lease_until") - now + setting("grace") + 3600000)
    workers.call(stopping, "cancel:" .. t.id)
  end
  return stopping
end

-- Every step of this job that waits or runs: the job is cancelled with the last of them.
function cancels.cancel_steps(job, now)
  for _, spec in ipairs(jobs.stages_of(job)[number(job, "stage")]) do
    local t = records.find(spec.id)
    local state = t and get(t, "state")
    if state == "queued" or state == "delayed" or state == "executing" then cancels.cancel(t, now) end
  end
end
