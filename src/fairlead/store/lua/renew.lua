-- Prolong leases, of tasks and without. A cancelled task is not prolonged: its worker learns that it must stop.
--
-- ARGV     holders lease clock
-- RETURNS  ok rows {ok ends fence? (without a task) | cancelled | fenced | unknown}... | uninitialised
-- FLAGS    allow-oom

local function renew_task(t, fence)
  if get(t, "stopping") == fence then return {answer = "cancelled"} end
  if get(t, "state") ~= "executing" or get(t, "fence") ~= fence then return {answer = "fenced"} end
  return {answer = "ok", ends = leases.prolong(t, tonumber(lease), now)}
end

-- By its fence, or by its id and its limit.
local function renew_bare(holder, bare)
  local fence, limit = holder.fence, holder.limit
  if limit and not tenants.is_called(get(bare, "limit"), holder.scope, limit) then return {answer = "fenced"} end
  if (fence or not limit) and get(bare, "fence") ~= fence then return {answer = "fenced"} end
  local ends = now + tonumber(lease)
  put(bare, "until", ends)
  leases.lease_until("lease:" .. holder.id, ends)
  return {answer = "ok", ends = ends, fence = number(bare, "fence")}
end

local rows = {}
for i, holder in ipairs(cmsgpack.unpack(holders)) do
  local t, bare = not holder.limit and records.find(holder.id), leases.bare(holder.id)
  rows[i] = t and renew_task(t, holder.fence) or bare and renew_bare(holder, bare) or {answer = "unknown"}
end
commit()
return {answer = "ok", rows = rows}
