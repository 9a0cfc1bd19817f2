-- End the leases that ran out: the worker was lost, or, past its deadline, the run timed out. With `worker`, which is known to be
-- dead: end all its leases now, and forget it with the last one.
--
-- ARGV     worker clock
-- RETURNS  ok ended more (there are some left) | uninitialised
-- FLAGS    allow-oom

-- Before a worker is woken: it must not be the dead one.
local function take_out(dead, holds_more)
  local called = get(dead, "called")
  if not holds_more then
    workers.forget(dead)
  else
    workers.not_idle(dead)
    profiles.unlist(dead)
    put(dead, "called", nil)
    put(dead, "full", nil)
    put(dead, "state", "draining")
  end
  if called then -- it will not respond to the call
    queues.reindex()
    waking.pass_on()
  end
end

local more
if worker == "" then
  more = time.end_leases(now)
else
  more = time.end_leases_of(worker, now)
  local record = workers.record(worker)
  if record then take_out(record, more) else workers.forget_lost(worker) end
end
waking.reindex_and_commit()
return {answer = "ok", ended = act.moved, more = more}
