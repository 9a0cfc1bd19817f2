-- Give a worker nothing more; with `gone`, forget it (it has stopped and holds nothing).
--
-- ARGV     worker gone clock
-- RETURNS  ok | busy <tasks> | unknown_worker | uninitialised
-- FLAGS    allow-oom

local int, commit = unit.int, acts.commit
local put = hashes.put
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
local me = workers.record(worker)
if not me then return {"unknown_worker"} end
local busy = call("ZCARD", keys.running(worker))
if gone == "1" then
  if busy > 0 then return {"busy", int(busy)} end
  workers.forget(me)
else
  workers.stop_waiting(me)
  put(me, "state", "draining")
end
commit()
return {"ok"}
