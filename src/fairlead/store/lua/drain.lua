-- Give a worker nothing more; with `gone`, forget it (it has stopped and holds nothing).
--
-- KEYS     meta
-- ARGV     worker gone clock
-- RETURNS  ok | busy <tasks> | unknown_worker | uninitialised
-- FLAGS    allow-oom
-- USES     workers

local now = begin(clock)
if not now then return {"uninitialised"} end
local me = worker_record(worker)
if not me then return {"unknown_worker"} end
local busy = call("ZCARD", running_key(worker))
if gone == "1" then
  if busy > 0 then return {"busy", int(busy)} end
  forget_worker(me)
else
  stop_waiting(me)
  put(me, "state", "draining")
end
commit()
return {"ok"}
