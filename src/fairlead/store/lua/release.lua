-- Put tasks back unrun, to the same place, and return the units of leases without a task.
--
-- ARGV     worker holders bare clock
-- RETURNS  ok rows {ok state | repeated state | fenced state? | unknown_task}... | uninitialised
-- FLAGS    allow-oom

-- `limit`: only if it is a lease of this limit; a caller that releases by force may have mixed up two ids.
local function release_bare(holder)
  local id, fence, limit, scope = holder.id, holder.fence, holder.limit, holder.scope
  local waiter, lease = limit and not fence and waiters.record(id), leases.bare(id)
  if waiter and tenants.is_called(get(waiter, "limit"), scope, limit) then
    waiters.withdraw(waiter)
    return {answer = "ok", state = "released"}
  end
  if not lease or fence and get(lease, "fence") ~= fence then return {answer = "fenced"} end
  if limit and not tenants.is_called(get(lease, "limit"), scope, limit) then return {answer = "fenced"} end
  leases.drop_bare(id, lease)
  return {answer = "ok", state = "released"}
end

local rows = {}
for i, holder in ipairs(cmsgpack.unpack(holders)) do
  if bare == "1" then
    rows[i] = release_bare(holder)
  else
    local t = records.find(holder.id)
    local word = endings.refused(t, worker, holder.fence)
    if not word then endings.give_back(t, now) end
    rows[i] = {answer = word or "ok", state = t and get(t, "state")}
  end
end
waking.reindex_and_commit()
return {answer = "ok", rows = rows}
