-- Prolong a lease without a task, by its id and its limit; its fence is checked if it is given.
--
-- ARGV     holder lease clock
-- RETURNS  ok ends fence | fenced | uninitialised
-- FLAGS    allow-oom

local named = cmsgpack.unpack(holder)
local bare = leases.named(named)
if not bare then return {answer = "fenced"} end
local ends = now + tonumber(lease)
put(bare, "until", ends)
leases.lease_until("lease:" .. named.id, ends)
commit()
return {answer = "ok", ends = ends, fence = number(bare, "fence")}
