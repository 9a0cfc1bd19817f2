-- A worker is alive: prolong the leases it names, and return what it must stop. When it names none: a page of all its leases, from a
-- cursor on, which is 0 at first and after the last page.
--
-- ARGV     worker status holders cursor lease clock
-- RETURNS  ok state rows {ok id ends deadline | cancelled id ends | fenced id}... now cursor (of the next page) bury (dead workers)
--          | unknown_worker | uninitialised
-- FLAGS    allow-oom

local me = workers.record(worker)
if not me or now - number(me, "seen") > setting("worker_ttl") then return {answer = "unknown_worker"} end

local PAGE = 256
local named, next_cursor = cmsgpack.unpack(holders), "0"
if not named then
  named = {}
  -- whatever changes between two pages, a lease that stays is on one of them; a rank would move
  local page = call("ZSCAN", keys.running(worker), cursor, "COUNT", PAGE)
  next_cursor = page[1]
  for i = 1, #page[2], 2 do named[#named + 1] = {id = page[2][i]} end
end

local function beat(holder)
  local t = records.find(holder.id)
  if t and get(t, "stopping") and get(t, "worker") == worker then
    return {answer = "cancelled", id = holder.id, ends = number(t, "lease_until")}
  end
  local mine = t and get(t, "state") == "executing" and get(t, "worker") == worker
  if not mine or (holder.fence and holder.fence ~= get(t, "fence")) then return {answer = "fenced", id = holder.id} end
  if t.known.facts.elastic then revoking.announce_again(t) end
  return {answer = "ok", id = holder.id, ends = leases.prolong(t, tonumber(lease), now), deadline = number(t, "deadline")}
end

local rows = {}
for i, holder in ipairs(named) do rows[i] = beat(holder) end
if status == "draining" then workers.drain(me) end
workers.mark_seen(me, now)

-- A caretaker does this every second; without one, a single worker is asked to.
local should_bury = math.abs(now - (number(act.meta, "buried_at") or 0)) >= 10000
if should_bury then put(act.meta, "buried_at", now) end
commit()
return {answer = "ok", state = get(me, "state"), rows = rows, now = now, cursor = next_cursor, bury = should_bury}
