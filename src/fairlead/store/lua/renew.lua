-- Prolong leases, of tasks and without. A cancelled task is not prolonged: its worker learns that it must stop.
--
-- ARGV     holders lease clock
-- RETURNS  ok { ok <lease until> <fence, without a task> | cancelled | fenced | unknown }... | uninitialised
-- FLAGS    allow-oom

local int, commit = unit.int, acts.commit
local get, put = hashes.get, hashes.put
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end

local function renew_task(t, fence)
  if get(t, "stopping") == fence then return {"cancelled"} end
  if get(t, "state") ~= "executing" or get(t, "fence") ~= fence then return {"fenced"} end
  return {"ok", int(leases.prolong(t, tonumber(lease), now))}
end

-- By its fence, or by whoever knows its id and its limit.
local function renew_bare(id, bare, fence, limit)
  if limit and get(bare, "limit") ~= limit then return {"fenced"} end
  if (fence or not limit) and get(bare, "fence") ~= fence then return {"fenced"} end
  put(bare, "until", now + tonumber(lease))
  leases.lease_until("lease:" .. id, now + tonumber(lease))
  return {"ok", int(now + tonumber(lease)), get(bare, "fence")}
end

local answers = {}
for i, holder in ipairs(cmsgpack.unpack(holders)) do
  local t, bare = not holder.limit and records.find(holder.id), leases.bare(holder.id)
  answers[i] = t and renew_task(t, holder.fence)
    or bare and renew_bare(holder.id, bare, holder.fence, holder.limit)
    or {"unknown"}
end
commit()
return {"ok", answers}
