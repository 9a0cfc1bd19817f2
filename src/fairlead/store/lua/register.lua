-- Register a worker, for the first time or again.
--
-- ARGV     worker capabilities task_types capacity reserve facts clock
-- RETURNS  ok | uninitialised
-- FLAGS    allow-oom

local me = workers.record(worker)
if not me then
  me = hash(keys.worker(worker))
  workers.forget_lost(worker)
end
me.id = worker
workers.not_idle(me)
for field, value in pairs(cmsgpack.unpack(facts)) do put(me, field, value) end
put(me, "capabilities", capabilities)
put(me, "types", task_types)
put(me, "capacity", tonumber(capacity))
put(me, "reserve", tonumber(reserve))
put(me, "state", "active")
put(me, "registered", now)
put(me, "called", nil)
profiles.list(me)
tiers.count_capacity(worker, tonumber(capacity), task_types)
workers.mark_seen(me, now)
waking.reindex_and_commit() -- with its capacity limits of tiers may have grown
return {answer = "ok"}
