-- Give a worker no more tasks; with `gone`, forget it (it has stopped and holds nothing).
--
-- ARGV     worker gone clock
-- RETURNS  ok | busy running | unknown_worker | uninitialised
-- FLAGS    allow-oom

local me = workers.record(worker)
if not me then return {answer = "unknown_worker"} end
local busy = call("ZCARD", keys.running(worker))
local was_called = get(me, "called")
if gone == "1" then
  if busy > 0 then return {answer = "busy", running = busy} end
  workers.forget(me)
else
  workers.drain(me)
end
if was_called then waking.pass_on() end -- it will not respond to the call
commit()
return {answer = "ok"}
