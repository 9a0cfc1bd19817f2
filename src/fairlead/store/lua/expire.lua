-- End the leases that ran out: a lost worker is a crash, a run past its deadline a timeout. With a worker, which is known to
-- be dead: end what it holds now, and forget it.
--
-- ARGV     worker clock
-- RETURNS  ok <leases ended> | uninitialised
-- FLAGS    allow-oom

local ordered, members = sets.ordered, sets.members
local get = hashes.get
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end

local function end_leases_of(dead)
  local held, record = members(ordered(keys.running(dead))), workers.record(dead)
  for _, id in ipairs(held) do time.end_run(id, now) end -- as many as it had room for
  local called = record and get(record, "called") and get(record, "profile")
  if record then workers.forget(record) else workers.forget_lost(dead) end -- before anybody is woken: it would be the wrong one
  if called then
    queues.settle()
    waking.pass_on(called)
  end
  return #held
end

local count = worker ~= "" and end_leases_of(worker) or time.end_leases(now)
waking.settle_and_commit()
return {"ok", count}
