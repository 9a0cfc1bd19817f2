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

local function end_leases_of(dead)
  local running, record = ordered(keys.running(dead)), workers.record(dead)
  local count, freed = 0, 0
  for _, id in ipairs(up_to(running, 1, time.AT_ONCE)) do
    if freed >= time.MOST_LIMITS then break end
    freed = freed + time.count_limits(time.end_run(id, now, true))
    remove(running, id)
    count = count + 1
  end
  local holds_more = first(running) ~= nil
  if record then take_out(record, holds_more) else workers.forget_lost(dead) end
  return count, holds_more
end

local count, more
if worker ~= "" then count, more = end_leases_of(worker) else count, more = time.end_leases(now) end
waking.reindex_and_commit()
return {answer = "ok", ended = count, more = more}
