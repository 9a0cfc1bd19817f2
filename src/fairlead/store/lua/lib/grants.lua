-- Giving tasks to one worker: dequeue, lease, units and fence in one step.

-- Bounds on what one act gives, exceeded by one task at most.
local MOST_BYTES = 1048576 -- of parameters
local MOST_LIMITS = 128 -- named by its tasks, less the work that time has made in it

-- What one worker can be given in this act. It looks at up to `looks` heads.
function grants.offer_of(me, lease, looks, now)
  local capacity, reserve = number(me, "capacity"), number(me, "reserve")
  local held, held_not_high = leases.running_on(me.id, reserve)
  return {
    me = me, now = now, lease = lease, freed_at = now + lease + setting("grace"), -- of the shortest lease
    free = capacity - held, open = capacity - reserve - held_not_high, running = ordered(keys.running(me.id)),
    looks = looks, steps = {left = looks}, ids = {}, bytes = 0, limits = 0,
    kept = 0, kept_open = 0, -- slots for tasks that others give back units for
  }
end

-- Bytes that its worker gets.
local function size_of(t)
  local job = jobs.job_of(t)
  return job and jobs.size_of(job) or records.size_of(t)
end

-- Starts the run of a task that was taken from its queue.
function grants.begin_run(offer, t, sub)
  local id, now, worker, known = t.id, offer.now, offer.me.id, t.known
  local place, native_high, tag = known.place, tonumber(known.facts.priority) == 0, tonumber(known.tag)
  local queued = math.max(known.arrival, tonumber(known.facts.created)) -- a later step has the place of its job, but has not waited as long
  local leased_until, waited = now + leases.length(t, offer.lease), now - queued
  if not known.facts.interactive then -- it passes the queue by, and takes nobody's turn
    fair_share.started(place, tag)
    choice.count_turn(place)
  end
  limits.take(id, subs.needs(sub))
  metrics.acquired(subs.needs(sub), waited)
  put_all(t, {
    "state", "executing", "fence", next_fence(), "worker", worker, "started", now,
    "deadline", now + known.facts.timeout, "lease_until", leased_until,
  })
  tiers.begin_run(t, subs.class(place))
  leases.begin_lease(t, leased_until + setting("grace"), offer.running, native_high and 0 or 1)
  presence.enter(t, presence.HELD, now)
  if known.wait_until then leases.wait_is_over(t) end
  if known.progress then put(t, "progress", nil) end -- of an earlier run
  if known.emitted then put(t, "emitted_before", known.emitted) end
  jobs.step_started(t, now)
  local why = choice.why(offer.steps, place)
  if why or known.chosen then put(t, "chosen", why and cjson.encode(why)) end
  local is_first = not known.waited
  if is_first then put(t, "waited", waited) end
  events.add(t, "claim", "queued", "executing", now, {
    worker = worker, place = place, tag = tag, waited = waited, looked_at = offer.looks - offer.steps.left,
    chosen = why, tier = get(t, "tier"), deadline = number(t, "deadline"), estimate = is_first and known.facts.estimate or nil,
  })
  offer.free = offer.free - 1
  if not native_high then offer.open = offer.open - 1 end
  offer.ids[#offer.ids + 1] = id
  offer.bytes = offer.bytes + size_of(t)
  offer.limits = offer.limits + #subs.needs(sub)
end

-- Starts the first task of a sub-queue, unless its record is gone or its type was declared to need more since it was submitted.
local function start(offer, sub)
  local member = first(subs.queue(sub))
  local id = names.about(member)
  local t = records.whole(id) -- its content is part of the answer
  if not t then return queues.drop_missing(sub, member) end
  if types.is_outdated(t) and queues.declare_again(t) then return end
  if act.entered_subs[sub] then act.entered_subs[sub] = act.entered_subs[sub] - 1 end -- no other worker has to be woken for it
  queues.dequeue(t, sub)
  grants.begin_run(offer, t, sub)
  queues.reindex()
  return true
end

-- One more task would make the act too long.
function grants.is_large(offer)
  return offer.bytes >= MOST_BYTES or offer.limits + act.timed >= MOST_LIMITS
end

-- Takes back what a better task than the next one lacks, and keeps a slot for it. False: it has to wait for another act.
local function relieve(offer, head, found)
  if not relief.begin(head, found) then return false end
  offer.kept = offer.kept + 1
  if names.place_of(head.lane) ~= "0n" then offer.kept_open = offer.kept_open + 1 end
  return true
end

-- Starts up to `want` tasks, best first, and adds them to `offer.ids`. Returns the sub-queue of the last. `only_starts`: it stops where
-- something would have to be taken back first.
function grants.give(offer, want, only_starts)
  local last, lanes_served
  while #offer.ids < want and offer.free > offer.kept and not grants.is_large(offer) do
    lanes_served = lanes_served or choice.lanes_of(get(offer.me, "profile"))
    local open = offer.open > offer.kept_open
    local sub, head = choice.best(lanes_served, open, offer.steps)
    if not sub and offer.steps.left == 0 then break end
    local parked, found = relief.is_before(head, lanes_served, open)
    if parked then
      offer.is_cut = only_starts or not relieve(offer, parked, found) -- none of those behind it goes first
      if offer.is_cut then break end
    elseif not sub then
      break
    elseif not acquiring.goes_first(sub, head) and start(offer, sub) then
      last = sub
    end
  end
  if last then alarm_at(offer.freed_at) end
  return last
end

-- The fields of a task as its worker gets it; one that is false is not there.
function grants.content_of(id)
  local t = records.whole(id)
  local record, job = t.known, jobs.job_of(t)
  if job or record.traceback then
    record = {}
    for field, value in pairs(t.known) do record[field] = value end
    record.traceback = nil -- of the run before
    if job then record.parameters = jobs.step_parameters(job) end -- made for the worker alone
  end
  return record
end
