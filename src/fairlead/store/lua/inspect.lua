-- Look at the memory of the server: while it is nearly full, what has ended goes earlier; while it evicts, nothing new is accepted.
--
-- ARGV     clock
-- RETURNS  ok used? most? policy? (none when the server does not say) pressed? (bytes for what has finished) | uninitialised
-- FLAGS    allow-oom

local used, most, policy = memory.inspect()
commit()
return {answer = "ok", used = used, most = most, policy = policy, pressed = memory.pressed()}
