-- A worker is alive: prolong the leases it names (all it holds when it names none), and tell it what to stop.
--
-- ARGV     worker status holders lease clock
-- RETURNS  ok <state> { <id> ok <lease until> <deadline> | <id> cancelled <lease until> | <id> fenced }... <now>
--          | unknown_worker | uninitialised
-- FLAGS    allow-oom

local int, commit = unit.int, acts.commit
local get, number, put = hashes.get, hashes.number, hashes.put
local ordered, members = sets.ordered, sets.members
local setting, begin = acts.setting, acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
local me = workers.record(worker)
if not me or now - number(me, "seen") > setting("worker_ttl") then return {"unknown_worker"} end

local named = cmsgpack.unpack(holders)
if not named then
  named = {}
  for _, id in ipairs(members(ordered(keys.running(worker)))) do named[#named + 1] = {id = id} end
end

local function beat(holder)
  local t = leases.task(holder.id)
  if t and get(t, "stopping") and get(t, "worker") == worker then
    return {holder.id, "cancelled", get(t, "lease_until")}
  end
  local mine = t and get(t, "state") == "executing" and get(t, "worker") == worker
  if not mine or (holder.fence and holder.fence ~= get(t, "fence")) then return {holder.id, "fenced"} end
  return {holder.id, "ok", int(leases.prolong(t, tonumber(lease), now)), get(t, "deadline")}
end

local answers = {}
for i, holder in ipairs(named) do answers[i] = beat(holder) end
if status == "draining" then workers.drain(me) end
workers.heard_of(me, now)
commit()
return {"ok", get(me, "state"), answers, int(now)}
