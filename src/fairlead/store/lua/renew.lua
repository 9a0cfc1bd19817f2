-- Prolong leases, of tasks and without. A cancelled task is not prolonged: its worker learns that it must stop.
--
-- KEYS     meta
-- ARGV     holders lease clock
-- RETURNS  ok { ok <lease until> | cancelled | fenced | unknown }... | uninitialised
-- FLAGS    allow-oom
-- USES     leases

local now = begin(clock)
if not now then return {"uninitialised"} end

local function renew_task(t, fence)
  if get(t, "stopping") == fence then return {"cancelled"} end
  if get(t, "state") ~= "executing" or get(t, "fence") ~= fence then return {"fenced"} end
  local instant = math.min(now, number(t, "deadline")) + tonumber(lease)
  put(t, "lease_until", instant)
  lease_until(t.id, instant)
  return {"ok", int(instant)}
end

local function renew_bare(id, bare, fence)
  if get(bare, "fence") ~= fence then return {"fenced"} end
  put(bare, "until", now + tonumber(lease))
  lease_until("lease:" .. id, now + tonumber(lease))
  return {"ok", int(now + tonumber(lease))}
end

local answers = {}
for i, holder in ipairs(cmsgpack.unpack(holders)) do
  local t, bare = task_record(holder.id), bare_lease(holder.id)
  answers[i] = t and renew_task(t, holder.fence) or bare and renew_bare(holder.id, bare, holder.fence) or {"unknown"}
end
commit()
return {"ok", answers}
