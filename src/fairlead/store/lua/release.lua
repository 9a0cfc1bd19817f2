-- Put tasks back unrun, to the same place, and return the units of leases without a task.
--
-- ARGV     worker holders bare clock
-- RETURNS  ok rows {ok state | repeated state | fenced state? | unknown_task}... | uninitialised
-- FLAGS    allow-oom

local function release_bare(holder)
  local waiter, lease = not holder.fence and waiters.record(holder.id), leases.named(holder)
  if waiter and tenants.is_called(get(waiter, "limit"), holder.scope, holder.limit) then
    waiters.withdraw(waiter)
  elseif lease then
    leases.drop_bare(holder.id, lease)
  else
    return {answer = "fenced"}
  end
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
