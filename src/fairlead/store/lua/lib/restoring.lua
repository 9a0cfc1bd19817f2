-- Records of the past become the live state again, after the server has lost them. What the server still has is kept where it is as new.

local WAYS = {completed = "complete", failed = "fail", dead_letter = "fail", cancelled = "cancel"} -- how a run ends in that state
local OF_RUN = {"optional", "revoked", "relieves", "stopping"}

function restoring.is_terminal(state) return WAYS[state] ~= nil end

-- Is what the server has at least as new? The number of the last event counts.
function restoring.is_as_new(record, fields, before_any)
  return (number(record, "told") or before_any) >= (tonumber(fields.told) or before_any)
end

-- A limit that nobody has defined yet gives nothing until somebody does. Returns the names of such.
local function define_limits(t)
  local facts, undefined = t.known.facts, {}
  submits.define_group_again(t)
  for _, need in ipairs(limits.needs(facts.limits or "")) do
    if not limits.of(need.name) and not tiers.is_limit(need.name) then
      limits.define(need.name, "slots", 0)
      undefined[#undefined + 1] = need.name
    end
  end
  return undefined
end

-- Out of every index, as the server has it.
local function unplace(t)
  local state = get(t, "state")
  if state == "executing" or get(t, "stopping") then
    leases.drop(t)
  elseif state == "queued" then
    queues.dequeue(t)
    remove(ordered(keys.waits), t.id)
  elseif state == "delayed" then
    backlog.end_delay(t)
  elseif state == "failed" or state == "dead_letter" then
    retention.unlist_dead(t)
  end
end

local function keep_ended(t, now)
  local state, replayable = get(t, "state"), get(t, "state") == "failed" or get(t, "state") == "dead_letter"
  if replayable then retention.keep_dead(t) else retention.keep_task(t) end
  t.ttl = math.max(1, setting(replayable and "dead_ttl" or "finished_ttl") + number(t, "finished") - now)
  idempotency.note_end(t.known.facts.key, t.id, state, t.known.facts.priority, t.known.facts.priority)
end

local function delay(t)
  local run_at = number(t, "run_at")
  add(ordered(keys.delayed(t.known.facts.priority)), names.member(number(t, "seq"), t.id), run_at)
  presence.enter(t, presence.DELAYED, run_at)
  backlog.count(t, 1)
  alarm_at(run_at)
end

local function queue(t)
  local facts, place, tag = t.known.facts, get(t, "place"), number(t, "tag")
  if facts.step == nil then
    local stride = fair_share.stride(tonumber(facts.weight) or 1, tonumber(facts.factor))
    fair_share.charge(place, facts.fair or "", tag + stride)
  end
  queues.enqueue(t, place, tag, number(t, "seq"))
  if get(t, "wait_until") then leases.wait_at_most_until(t, number(t, "wait_until")) end
end

-- Its lease is lost with the data: it runs again, in its place, and no retry is used up.
local function lose_lease(t, now)
  local detail = {code = "data_lost", crashes = number(t, "crashes") or 0, losses = number(t, "losses")}
  if t.known.facts.interactive then
    endings.set_error(t, {code = "data_lost", message = "the store lost its data while it ran"}, true)
    return endings.finish(t, "expire", "failed", now, detail)
  end
  put(t, "state", "queued")
  queue(t)
  events.add(t, "expire", "executing", "queued", now, detail)
end

-- Its job knows that the step has ended: the events of that were lost.
local function end_as_known(t, kept, now)
  local state, to = get(t, "state"), kept.state
  local function note(verb, after)
    events.add_lost(t, verb, state, after, now)
    state = after
  end
  if to ~= "cancelled" and state ~= "executing" then
    put(t, "fence", next_fence())
    if state == "delayed" then note("promote", "queued") end
    note("claim", "executing")
  end
  note(WAYS[to], to)
  put_all(t, {"state", to, "finished", kept.finished or now})
  if to == "completed" then put(t, "reported", get(t, "fence")) end
  if to ~= "completed" and not get(t, "error") then
    endings.set_error(t, {code = "data_lost", message = "how it failed was lost; its job says that it did"}, true)
  end
  keep_ended(t, now)
end

-- What the job keeps of the step, if that has ended; false: there is no such job; nil: the step has not ended, or the task is none.
local function kept_end(t)
  local facts = t.known.facts
  if not facts.step then return nil end
  local job = jobs.record(facts.job_id)
  if not job then return false end
  local field = "step:" .. facts.step
  unpack_field(job, field)
  local kept = get(job, field)
  return kept and restoring.is_terminal(kept.state) and kept or nil
end

-- Returns what became of it: the state, and for people `unknown` limits, or the number that it had `before`.
function restoring.task(id, fields, kept, now)
  local t = records.whole(id)
  if t and restoring.is_as_new(t, fields, 1) then return {state = "kept"} end
  local known_as = t and t.known.facts.made
  if t then unplace(t) else t = hash(keys.task(id)) end
  hashes.replace(t, fields)
  t = records.opened(t, id)
  local facts, state = t.known.facts, get(t, "state")
  kept = kept or kept_end(t)
  for _, field in ipairs(OF_RUN) do put(t, field, nil) end
  local made = known_as or listing.restore(keys.tasks, tonumber(facts.made), id)
  local before = tonumber(facts.made) ~= made and facts.made or nil
  if before then records.change(t, "made", made) end
  acts.raise_number("seq", number(t, "seq") or 0)
  acts.raise_number("fence", number(t, "fence") or 0)
  t.persist = true
  idempotency.restore(facts.key, facts.digest, id, tonumber(facts.created))
  local row = {state = state, before = before}
  if restoring.is_terminal(state) then
    t.persist = nil
    keep_ended(t, now)
  elseif kept ~= nil then
    t.persist = nil
    end_as_known(t, kept or {state = "cancelled"}, now)
    row.state = get(t, "state")
  else
    row.unknown = define_limits(t)
    if state == "executing" then lose_lease(t, now) elseif state == "delayed" then delay(t) else queue(t) end
  end
  return row
end
