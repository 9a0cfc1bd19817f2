-- Give a worker nothing more; with `gone`, forget it (it has stopped and holds nothing).
--
-- ARGV     worker gone clock
-- RETURNS  ok | busy <tasks> | unknown_worker | uninitialised
-- FLAGS    allow-oom

local int, commit = unit.int, acts.commit
local get = hashes.get
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
local me = workers.record(worker)
if not me then return {"unknown_worker"} end
local busy = call("ZCARD", keys.running(worker))
local was_called = get(me, "called")
if gone == "1" then
  if busy > 0 then return {"busy", int(busy)} end
  workers.forget(me)
else
  workers.drain(me)
end
if was_called then waking.pass_on() end -- it will not answer the call
commit()
return {"ok"}
