-- Give a running task more time: its deadline and its lease only ever get later.
--
-- ARGV     worker holder ms lease clock
-- RETURNS  ok deadline | fenced | unknown_task | uninitialised
-- FLAGS    allow-oom

local named = cmsgpack.unpack(holder)
local t = records.find(named.id)
if not t then return {answer = "unknown_task"} end
if not leases.is_held_by(t, worker, named.fence) then return {answer = "fenced"} end

local tier = tiers.all()[get(t, "tier") or ""]
local most = tier and number(t, "started") + tier.ms or math.huge -- no run is longer than its tier
local deadline, before = math.min(now + tonumber(ms), most), number(t, "deadline")
if deadline > before then
  put(t, "deadline", deadline)
  if deadline == most then put(t, "bounded", 1) end
  events.add(t, "extend", "executing", "executing", now, {deadline = deadline, worker = get(t, "worker")})
end
local instant = now + leases.length(t, tonumber(lease))
if instant > number(t, "lease_until") then
  put(t, "lease_until", instant)
  leases.lease_until(t.id, instant)
end
commit()
return {answer = "ok", deadline = math.max(deadline, before)}
