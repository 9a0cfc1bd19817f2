-- Give the best waiting tasks to one worker, and again what it was handed and has not acknowledged.
--
-- ARGV     worker want lease wait request acknowledged capabilities clock
-- RETURNS  ok alarm? tasks {id fields}... now again | draining tasks {id fields}... now | unknown_worker | uninitialised
-- FLAGS    allow-oom

local me = workers.record(worker)
if not me or now - number(me, "seen") > setting("worker_ttl") then return {answer = "unknown_worker"} end

local function contents(ids)
  local list = {}
  for i, id in ipairs(ids) do list[i] = {id = id, fields = grants.content_of(id)} end
  return list
end

-- The reply to this request was lost: the tasks are leased already, so they are returned again. A worker may have several requests
-- under way, which differ in their first letter: the last request of each letter is remembered.
local letter, is_active = string.match(request, "^%a") or "", get(me, "state") == "active"
if request ~= "" and get(me, "request" .. letter) == request then
  local still = {}
  for id in string.gmatch(get(me, "granted" .. letter) or "", "%S+") do
    local t = records.find(id)
    if t and get(t, "state") == "executing" and get(t, "worker") == worker then still[#still + 1] = id end
  end
  if not is_active then return {answer = "draining", tasks = contents(still), now = now} end
  return {answer = "ok", alarm = number(act.meta, "alarm"), tasks = contents(still), now = now, again = get(me, "again" .. letter) ~= nil}
end

-- Its profile must see all sub-queues that it serves before it is given a task.
if capabilities ~= "" then put(me, "capabilities", capabilities) end -- they have changed since it registered
local profile = is_active and profiles.list(me)
if is_active and not profiles.has_joined(profile) then
  workers.mark_seen(me, now)
  commit()
  return {answer = "ok", tasks = {}, now = now, again = true}
end

local function remember(ids, again)
  if request == "" then return end
  put(me, "request" .. letter, request)
  put(me, "granted" .. letter, table.concat(ids, " "))
  put(me, "again" .. letter, again and 1 or nil)
end

if not is_active then
  local ids = handover.unacknowledged(me, acknowledged, tonumber(lease), now)
  if #ids > 0 then remember(ids) end
  commit()
  return {answer = "draining", tasks = contents(ids), now = now}
end
time.advance(now)
queues.reindex()
local ids = handover.unacknowledged(me, acknowledged, tonumber(lease), now) -- not before the leases that ran out have ended
holds.make(now)
local was_called = get(me, "called")
if was_called then put(me, "called", nil) end
workers.not_idle(me)

local MOST_TASKS, LEAST_TASKS = 128, 32 -- of one act, less the work that time has made in it
local wanted = tonumber(want)
local most = math.min(wanted, math.max(LEAST_TASKS, MOST_TASKS - act.timed))
local offer = grants.offer_of(me, tonumber(lease), 64 + most, now)
grants.give(offer, most)
for _, id in ipairs(offer.ids) do ids[#ids + 1] = id end

local has_room = #offer.ids < wanted and offer.free > 0
-- it may find more in the next act
local unfinished = has_room
  and (#offer.ids == most or grants.is_large(offer) or offer.is_cut or offer.steps.left == 0 or act.overdue ~= nil)
remember(ids, unfinished)
workers.mark_seen(me, now)
local waits = has_room and not unfinished and wait ~= "0"
local watches = waits and workers.watches(me, now)
if watches then act.announce_alarm = false end -- this one learns of it
local full = offer.free <= 0 and #offer.ids == 0 and wait ~= "0" -- it asks before it reports the result that makes room
if full or get(me, "full") then put(me, "full", full and 1 or nil) end
if unfinished then act.asks_again = profile end
deferring.claimed_by(profile)
queues.reindex()
waking.wake()
if #offer.ids > 0 or was_called then waking.pass_on() end
relief.for_slots()
queues.reindex()
if waits then workers.set_idle(me, offer.open > 0, wait == "2" and lease, now) end
commit()
local alarm = (watches or wait == "0") and number(act.meta, "alarm") or nil
return {answer = "ok", alarm = alarm, tasks = contents(ids), now = now, again = unfinished}
