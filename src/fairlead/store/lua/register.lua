-- Make a worker known, or known again.
--
-- KEYS     meta
-- ARGV     worker capabilities types capacity reserve facts clock
-- RETURNS  ok | uninitialised
-- USES     workers

local now = begin(clock)
if not now then return {"uninitialised"} end
local me = worker_record(worker) or hash(worker_key(worker))
me.id = worker
not_idle(me)
for field, value in pairs(cmsgpack.unpack(facts)) do put(me, field, value) end
put(me, "capabilities", capabilities)
put(me, "types", types)
put(me, "capacity", tonumber(capacity))
put(me, "reserve", tonumber(reserve))
put(me, "state", "active")
put(me, "registered", now)
heard_of(me, now)
commit()
return {"ok"}
