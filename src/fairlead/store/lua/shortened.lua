-- A worker has applied the new deadlines of runs that were shortened: the units that these gave up are free.
--
-- ARGV     worker holders clock
-- RETURNS  ok rows {ok | fenced | unknown_task}... | uninitialised
-- FLAGS    allow-oom

local function confirm(holder)
  local t = records.find(holder.id)
  if not t then return {answer = "unknown_task"} end
  if not leases.is_held_by(t, worker, holder.fence) then return {answer = "fenced"} end
  local revoked = get(t, "revoked")
  if revoked then
    put(t, "revoked", nil)
    limits.free(t.id, limits.needs(revoked))
    tiers.offer(t, tiers.all()[get(t, "tier")])
    revoking.end_for(t)
  end
  return {answer = "ok"}
end

local rows = {}
for i, holder in ipairs(cmsgpack.unpack(holders)) do rows[i] = confirm(holder) end
waking.reindex_and_commit()
return {answer = "ok", rows = rows}
