-- Sessions: running interactive tasks. They are never queued: admitted at once or refused, and halted when a waiting task needs their
-- place (relief.lua). Client and handler exchange frames: those of the client wait here until the handler fetches them.

local MOST_LOOKED_AT = 64 -- workers
sessions.MOST_FRAMES = 64 -- that wait for a handler
local AT_ONCE = 16 -- frames that a handler fetches: a mebibyte at most
local BACK = 30000 -- ms for a client whose server was killed to connect again

local GONE = {code = "CLIENT_GONE", message = "its client went away"}

-- Workers that may have a free slot, the ones seen last first: before those that are stored, what this act has seen itself.
local function live_workers()
  local since, seen, list = int(act.instant - setting("worker_ttl")), ordered(keys.workers), {}
  for id in pairs(seen.added) do list[#list + 1] = id end
  for _, id in ipairs(call("ZREVRANGEBYSCORE", keys.workers, "+inf", since, "LIMIT", 0, MOST_LOOKED_AT)) do
    if not seen.removed[id] then list[#list + 1] = id end
  end
  return list
end

local function serves(me, lane)
  local profile = me and get(me, "state") == "active" and get(me, "profile")
  return profile and audiences.registry().has[names.audience_of(lane)][profile]
end

-- Is any worker of this lane not full?
function sessions.is_slot_free(lane)
  local place = names.place_of(lane)
  for _, id in ipairs(live_workers()) do
    local me = workers.record(id)
    if serves(me, lane) then
      local offer = grants.offer_of(me, 0, 0, act.instant)
      if offer.free > 0 and (offer.open > 0 or place == "0n") then return true end
    end
  end
  return false
end

-- A waiting task that could start on this worker goes first.
local function is_needed(me)
  local offer = grants.offer_of(me, 0, 0, act.instant)
  return choice.best(choice.lanes_of(get(me, "profile")), offer.open > 0, {left = 8}) ~= nil
end

-- What a worker that has room for the task can be offered; nil when there is none.
local function offer_for(sub, place)
  local lane = subs.lane(sub)
  for _, id in ipairs(live_workers()) do
    local me = workers.record(id)
    local offer = serves(me, lane) and handover.offer_unqueued(me, place)
    if offer and not is_needed(me) then return offer end
  end
end

-- Starts an interactive task, or refuses it: there is no free slot, or a waiting task needs it. Nothing of a refused one is kept.
function sessions.admit(spec, now)
  time.advance(now) -- a task that is due goes first
  queues.reindex()
  local place = int(spec.priority) .. "n"
  local route = subs.route_of(spec.type, spec.capabilities)
  local sub = names.sub_queue(place, route, spec.limits)
  local offer = not limits.blocking(sub) and offer_for(sub, place)
  if not offer then
    revoking.press()
    return {answer = "no_capacity"}
  end
  local t = records.make(spec, now)
  put_all(t, {"state", "queued", "arrival", now})
  events.add(t, "submit", nil, "queued", now, {type = spec.type, priority = spec.priority, fair = spec.fair})
  if spec.key then idempotency.remember(spec.key, spec.digest, spec.id) end
  workers.not_idle(offer.me)
  handover.start(offer, t, place, sub)
  sessions.note_activity(t, now)
  change_count(act.meta, "sessions", 1)
  return {answer = "ok", id = spec.id, state = "executing"}
end

-- The one that was idle longest is halted first.
function sessions.note_activity(t, now)
  add(ordered(keys.sessions), t.id, now)
end

function sessions.end_run(t)
  remove(ordered(keys.sessions), t.id)
  if get(t, "client") then remove(ordered(keys.attached), t.id) end
  change_count(act.meta, "sessions", -1)
  act.unlinked[#act.unlinked + 1] = keys.frames(t.id)
  revoking.end_for(t)
end

-- One client at a time is connected, and renews that. Returns whether this one is. A server ends the session of a client that leaves,
-- but nobody does when that server is killed: time does (time.lua).
function sessions.attach(t, client, until_when)
  local other = get(t, "client")
  if other and other ~= client and number(t, "client_until") > act.instant then return false end
  put_all(t, {"client", client, "client_until", until_when})
  add(ordered(keys.attached), t.id, until_when + BACK)
  alarm_at(until_when + BACK)
  return true
end

-- Its client did not come back.
function sessions.end_left(id, now)
  remove(ordered(keys.attached), id)
  local t = records.find(id)
  if not t or t.known.state ~= "executing" then return end -- it is stopping already
  endings.set_error(t, GONE, false)
  cancels.cancel(t, now)
  return t
end

-- Keeps a frame for the handler. Its number, or nil when too many wait already.
function sessions.keep_frame(t, frame, now)
  if call("LLEN", keys.frames(t.id)) >= sessions.MOST_FRAMES then return nil end
  local seq = (number(t, "framed") or 0) + 1
  put(t, "framed", seq)
  write({"RPUSH", keys.frames(t.id), frame})
  sessions.note_activity(t, now)
  workers.call(t.known.worker, "frames:" .. t.id)
  return seq
end

-- The frames after number `after`, which the handler has; those up to it are deleted.
function sessions.frames_after(t, after)
  local first_kept = (number(t, "framed") or 0) - call("LLEN", keys.frames(t.id)) + 1
  local known = math.max(0, after - first_kept + 1)
  if known > 0 then write({"LTRIM", keys.frames(t.id), known, -1}) end
  local list = {}
  for i, frame in ipairs(call("LRANGE", keys.frames(t.id), known, known + AT_ONCE - 1)) do
    list[i] = {seq = first_kept + known + i - 1, frame = frame}
  end
  return list
end
