-- How a run ends: finished, retried, counted as a crash, given back.

function endings.finish(t, verb, state, now, detail)
  local known, facts = t.known, t.known.facts
  local from = known.state
  put_all(t, {"state", state, "finished", now})
  if known.wait_until then put(t, "wait_until", nil) end
  local replayable = state == "failed" or state == "dead_letter"
  if replayable then retention.keep_dead(t) elseif not known.stopping then retention.keep_task(t) end
  if facts.key then
    idempotency.note_end(facts.key, t.id, state, facts.priority, known.place and subs.class(known.place) or facts.priority)
  end
  t.ttl = setting(replayable and "dead_ttl" or "finished_ttl")
  t.beside = known.emitted and keys.output(t.id)
  local job = state ~= "completed" and jobs.job_of(t)
  if job then jobs.step_failed(job, t, state, now) end
  events.add(t, verb, from, state, now, detail)
  act.ended[state] = (act.ended[state] or 0) + 1
  presence.note_end(t, state)
end

local function write_counts(key, counts)
  if next(counts) == nil then return end
  for field, count in pairs(counts) do write({"HINCRBY", key, field, count}) end
  write({"PEXPIRE", key, 120000})
end

function endings.write()
  if next(act.ended) == nil then return end
  local bucket = int(math.floor(act.instant / 10000))
  write_counts(keys.recent(bucket), act.ended)
  write_counts(keys.recentof(bucket), act.ended_of)
end

-- The traceback is a separate, optional field, because lists, events and workers do not need it.
function endings.set_error(t, problem, retriable)
  local known = t.known
  if problem.traceback or known.retries or known.crashes or known.losses then put(t, "traceback", problem.traceback) end
  put(t, "error", cjson.encode({code = problem.code, message = problem.message, retriable = retriable}))
end

-- From `executing` or a delay back into the queue, at the base place.
function endings.requeue(t, verb, arrival, now, detail)
  local from = get(t, "state")
  put(t, "state", "queued")
  put(t, "arrival", arrival)
  put(t, "run_at", nil)
  queues.enter(t, t.known.facts.priority .. "n")
  events.add(t, verb, from, "queued", now, detail)
end

-- From `executing` back to the same place, keeping the time it has waited.
function endings.put_back(t)
  put(t, "state", "queued")
  queues.enqueue(t, get(t, "place"), number(t, "tag"), number(t, "seq"))
end

local WITHDRAWN = {code = "HALTED", message = "its worker is shutting down"}

-- Ends the lease of a run that has not begun, or leaves no trace, as if it had never existed.
function endings.give_back(t, now)
  put(t, "reported", get(t, "fence"))
  leases.drop(t)
  if t.known.facts.interactive then -- it is never queued
    endings.set_error(t, WITHDRAWN, false)
    return endings.finish(t, "cancel", "cancelled", now)
  end
  endings.put_back(t)
  events.add(t, "release", "executing", "queued", now)
end

-- Fields of the last runs, which a task that is queued again does not keep.
local OF_LAST_RUNS = {"retries", "crashes", "losses", "error", "traceback", "finished", "worker", "started", "deadline", "progress", "tier", "tiers", "truncated"}

-- Queues a failed or dead-lettered task again as if it had never run (submits.refusal_of_return says whether that is possible).
function endings.revive(t, now)
  for _, field in ipairs(OF_LAST_RUNS) do put(t, field, nil) end
  if get(t, "timeout_given") then
    records.change(t, "timeout", number(t, "timeout_given"))
    put(t, "timeout_given", nil)
  end
  t.persist = true
  t.beside = get(t, "emitted") and keys.output(t.id)
  retention.unlist_dead(t)
  submits.define_group_again(t)
  tiers.assign_again(t)
  endings.requeue(t, "replay", now, now)
end

-- Adds to the details of an event what estimates learn from a run that has ended.
function endings.with_run(t, detail)
  local facts = t.known.facts
  detail.ran, detail.type, detail.size, detail.needs, detail.fair = t.ran, facts.type, facts.size_hint, facts.limits, facts.fair
  detail.tier = facts.elastic and t.known.tier or facts.duration
  return detail
end

-- Doubles up to a maximum; the upper half is random.
local function back_off(retries, jitter)
  local delay = math.min(setting("retry_max"), setting("retry_base") * 2 ^ math.min(retries - 1, 40))
  return math.floor(delay / 2) + math.floor(delay * jitter / 2000)
end

local MOST_LONGER = 3 -- a timeout grows to this many times what it was at first

local function lengthen_timeout(t)
  local timeout = t.known.facts.timeout
  local given = number(t, "timeout_given") or timeout
  put(t, "timeout_given", given)
  records.change(t, "timeout", math.min(math.floor(timeout * 3 / 2), MOST_LONGER * given))
end

local function retry(t, verb, code, jitter, retry_after, now)
  local retries = (number(t, "retries") or 0) + 1
  put(t, "retries", retries)
  if code == "timeout" then lengthen_timeout(t) end
  local delay = math.max(retry_after, back_off(retries, jitter))
  local detail = endings.with_run(t, {code = code, retries = retries, delay = delay})
  if delay == 0 then return endings.requeue(t, verb, now, now, detail) end
  backlog.delay_until(t, now + delay)
  events.add(t, verb, "executing", "delayed", now, detail)
end

-- The run of `t` failed; its lease is dropped here.
function endings.fail_run(t, verb, problem, now)
  leases.drop(t)
  endings.set_error(t, problem, problem.retriable)
  if problem.retriable and (number(t, "retries") or 0) < tonumber(t.known.facts.max_retries) then
    retry(t, verb, problem.code, problem.jitter, problem.retry_after, now)
  else
    endings.finish(t, verb, problem.retriable and "dead_letter" or "failed", now, endings.with_run(t, {code = problem.code}))
  end
end

-- Notes how long the run took, in ms; the pace of its account is updated.
function endings.learn_run(t, now)
  t.ran = now - t.known.started
  fair_share.learn(t.known.facts.fair or "", t.ran)
end

endings.LOST = {code = "worker_lost", message = "the worker that ran it was lost"}
local LOSSES_PER_CRASH = 4 -- no task may take workers with it for ever

-- What ran `t` is gone, which is counted in the field `count`, up to `most`. It uses up no retry, and keeps its place and the time it has
-- waited.
local function end_lost_run(t, verb, now, count, most, problem)
  leases.drop(t)
  put(t, count, (number(t, count) or 0) + 1)
  local detail = {code = problem.code, crashes = number(t, "crashes") or 0, losses = number(t, "losses"), worker = get(t, "worker")}
  endings.set_error(t, problem, true)
  if t.known.facts.interactive then return endings.finish(t, verb, "failed", now, detail) end
  if number(t, count) >= most then return endings.finish(t, verb, "dead_letter", now, detail) end
  endings.put_back(t)
  events.add(t, verb, "executing", "queued", now, detail)
end

-- It may have killed its worker, or, with a `problem`, the process of its handler.
function endings.crash_run(t, verb, now, problem)
  if problem then endings.learn_run(t, now) end -- of a lost worker it is not known how long it ran
  end_lost_run(t, verb, now, "crashes", setting("crash_limit"), problem or endings.LOST)
end

-- Its worker is gone, and the task was probably not the cause.
function endings.lose_run(t, now)
  end_lost_run(t, "expire", now, "losses", setting("crash_limit") * LOSSES_PER_CRASH, endings.LOST)
end

-- Why the caller may not report the end of the run of `t`; nil when it may. A repeated report is recognised by its fence alone: another
-- worker may hold the task by now.
function endings.refused(t, worker, fence)
  if not t then return "unknown_task" end
  local known = t.known
  if known.stopping and leases.is_named_by(t, worker, fence, known.stopping) then
    leases.drop(t) -- cancelled while it ran: the report shows that the run has ended
    return "fenced"
  end
  if fence and fence == known.reported then return "repeated" end
  return not leases.is_held_by(t, worker, fence) and "fenced" or nil
end
