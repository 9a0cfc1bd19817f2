-- A waiting worker is handed a task with the message that wakes it: it need not claim it first.
--
-- The message may be lost, so with each claim the worker acknowledges what it was handed, and is given the rest again.

local UNTIL_CLAIM = 10000 -- ms in which a worker that is woken claims, which prolongs the lease

local function is_silent(me)
  return act.instant - number(me, "seen") > setting("worker_ttl") / 2
end

-- The lease under which it takes a task, nil when it should be woken instead: because something is due by time first, which a claim
-- does, or because it was silent for long: a task that a dead worker is handed is free again only when its lease ends.
local function takes_for(me)
  local alarm = number(act.meta, "alarm")
  if alarm and alarm <= act.instant or is_silent(me) then return nil end
  return number(me, "takes")
end

local function note_handed(me, id)
  put(me, "handed", (get(me, "handed") or "") .. id .. ":" .. int(hash(keys.task(id)).known.fence) .. " ")
end

local function send_task(me, id)
  note_handed(me, id)
  workers.call(me.id, "take:" .. cmsgpack.pack({act.instant, {id, grants.content_of(id)}}))
end

-- The sub-queue whose task it was handed; nil when it should be woken instead, also when a claim would make holds first.
function handover.hand_to(me)
  local lease = takes_for(me)
  if not lease or holds.are_due(act.instant) then return nil end
  local offer = grants.offer_of(me, lease, 64, act.instant)
  local sub = grants.give(offer, 1, true)
  if sub then send_task(me, offer.ids[1]) end
  return sub
end

-- For a task that comes to `place` while no other task waits: what a waiting worker can be offered, if it takes tasks. The task would
-- be chosen, so it need not be queued and dequeued.
function handover.offer_straight(t, place)
  if backlog.queued_in_all() > 0 or waiters.anybody() or not workers.anybody_idle() then return nil end
  local sub = subs.of(place, t)
  if limits.blocking(sub) then return nil end
  local me = waking.idler_for(subs.lane(sub))
  return me and handover.offer_to(me, place)
end

function handover.start_straight(offer, t, place)
  local sub, tag, seq = subs.of(place, t), queues.next_position(t, place)
  put_all(t, {"place", place, "tag", tag, "seq", seq})
  fair_share.run_dry(place)
  workers.not_idle(offer.me)
  overlap.remember(sub)
  grants.begin_run(offer, t, sub)
  alarm_at(offer.freed_at)
  send_task(offer.me, t.id)
end

-- What `worker` can be offered in this act, or nil when it has no room.
function handover.offer_to(me, place)
  local lease = takes_for(me)
  local offer = lease and grants.offer_of(me, lease, 0, act.instant)
  return offer and offer.free > 0 and (offer.open > 0 or place == "0n") and offer or nil
end

-- What `me` can be offered of a task that is never queued, or nil. A waiting worker that takes no task with a message now is woken: its
-- next claim returns the task, as one that it has not acknowledged.
function handover.offer_unqueued(me, place)
  local waits = (get(me, "idle") or get(me, "takes")) and not is_silent(me)
  local lease = takes_for(me) or waits and UNTIL_CLAIM
  local offer = lease and grants.offer_of(me, lease, 0, act.instant)
  return offer and offer.free > 0 and (offer.open > 0 or place == "0n") and offer or nil
end

-- Starts a task that was never queued.
function handover.start(offer, t, place, sub)
  put_all(t, {"place", place, "tag", 0, "seq", next_number("seq")})
  overlap.remember(sub)
  grants.begin_run(offer, t, sub)
  alarm_at(offer.freed_at)
  if takes_for(offer.me) then return send_task(offer.me, t.id) end
  note_handed(offer.me, t.id)
  workers.call(offer.me.id, "room")
end

-- What it was handed and has not acknowledged, although it still holds it. `acknowledged` are fences. The lease starts over, because
-- the worker counts the lease of a claimed task from the claim.
function handover.unacknowledged(me, acknowledged, lease, now)
  local ids, knows, handed = {}, {}, get(me, "handed")
  if not handed then return ids end
  for fence in string.gmatch(acknowledged, "%d+") do knows[fence] = true end
  for id, fence in string.gmatch(handed, "(%S+):(%d+) ") do
    local t = not knows[fence] and records.find(id)
    if t and leases.is_held_by(t, me.id, fence) then
      ids[#ids + 1] = id
      leases.prolong(t, lease, now)
    end
  end
  put(me, "handed", nil)
  return ids
end
