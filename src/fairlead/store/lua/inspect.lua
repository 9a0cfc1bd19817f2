-- Check the memory of the server: while it is nearly full, finished tasks go earlier; while it evicts, no new task is accepted.
--
-- ARGV     clock
-- RETURNS  ok used? most? policy? (absent when the server does not say) pressed? (bytes for what has finished) | uninitialised
-- FLAGS    allow-oom

local used, most, policy = memory.inspect()
commit()
return {answer = "ok", used = used, most = most, policy = policy, pressed = memory.pressed()}
