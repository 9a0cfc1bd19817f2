-- How a run ends: finished, retried, counted as a crash, given back.
--
-- USES     leases events jobs

local ended, ended_key = {}, nil -- state -> tasks that ended in this act

local function finish(t, act, state, now, detail)
  local known = t.known
  local from = known.state
  put_all(t, {"state", state, "finished", now})
  if known.wait_until then put(t, "wait_until", nil) end
  local replayable = state == "failed" or state == "dead_letter"
  if replayable then add(ordered(dead_key), t.id, now) end
  t.ttl = setting(replayable and "dead_ttl" or "finished_ttl")
  t.beside = known.emitted and output_key(t.id)
  local job = state ~= "completed" and job_of(t)
  if job then step_failed(job, t, state, now, detail and detail.crashes) end
  event(t, act, from, state, now, detail)
  ended_key = recent_key(int(math.floor(now / 10000)))
  ended[state] = (ended[state] or 0) + 1
end

local function write_endings()
  for state, count in pairs(ended) do write({"HINCRBY", ended_key, state, count}) end
  if ended_key then write({"PEXPIRE", ended_key, 120000}) end
end
on_commit(write_endings)

local function set_error(t, code, message, retriable)
  put(t, "error", cjson.encode({code = code, message = message, retriable = retriable}))
end

-- From `executing` or a delay back into the queue, at the base place.
local function requeue(t, act, arrival, now, detail)
  local from = get(t, "state")
  put(t, "state", "queued")
  put(t, "arrival", arrival)
  put(t, "run_at", nil)
  enter(t, get(t, "priority") .. "n")
  event(t, act, from, "queued", now, detail)
end

-- From `executing` back to the very place it had, with the time it has waited.
local function put_back(t)
  put(t, "state", "queued")
  enqueue(t, get(t, "place"), number(t, "tag"), number(t, "seq"))
end

-- A failed or dead-lettered task is to be tried again: these fields are of its last runs.
local function revive(t, now, forgotten)
  for _, field in ipairs(forgotten) do put(t, field, nil) end
  t.persist = true
  t.beside = get(t, "emitted") and output_key(t.id)
  remove(ordered(dead_key), t.id)
  requeue(t, "replay", now, now)
end

-- Seconds before minutes: doubles up to a most, the upper half random.
local function back_off(retries, jitter)
  local delay = math.min(setting("retry_max"), setting("retry_base") * 2 ^ math.min(retries - 1, 40))
  return math.floor(delay / 2) + math.floor(delay * jitter / 2000)
end

local function retry(t, act, code, jitter, retry_after, now)
  local retries = (number(t, "retries") or 0) + 1
  put(t, "retries", retries)
  put(t, "wait_until", nil)
  if code == "timeout" then
    if not get(t, "timeout_given") then put(t, "timeout_given", get(t, "timeout")) end
    put(t, "timeout", math.floor(number(t, "timeout") * 3 / 2))
  end
  local delay = math.max(retry_after, back_off(retries, jitter))
  local detail = {code = code, retries = retries, delay = delay}
  if delay == 0 then return requeue(t, act, now, now, detail) end
  delay_until(t, now + delay)
  event(t, act, "executing", "delayed", now, detail)
end

-- The run of `t` failed; its lease is dropped here.
local function fail_run(t, act, problem, now)
  drop_lease(t)
  set_error(t, problem.code, problem.message, problem.retriable)
  if problem.retriable and (number(t, "retries") or 0) < number(t, "max_retries") then
    retry(t, act, problem.code, problem.jitter, problem.retry_after, now)
  else
    finish(t, act, problem.retriable and "dead_letter" or "failed", now, {code = problem.code})
  end
end

-- What the run cost is known now: correct the books. A run that is `repeated` was charged for the next one.
local function book_run(t, now, repeated)
  local known = t.known
  local actual, cost = now - known.started, tonumber(known.cost)
  correct_books(known.place, known.fair or "", actual + (repeated and cost or 0), cost, tonumber(known.weight) or 1)
  return actual
end

-- What ran `t` is gone: its worker, or with a `problem` only the process of its handler. It uses up no retry, and loses neither
-- its place nor the time it has waited: it was not its fault, or three of those are enough to tell.
local function crash(t, act, now, problem)
  local code = problem and problem.code or "worker_lost"
  drop_lease(t)
  local crashes = (number(t, "crashes") or 0) + 1
  local ends = crashes >= setting("crash_limit")
  put(t, "crashes", crashes)
  put(t, "wait_until", nil)
  local detail = {code = code, crashes = crashes, worker = get(t, "worker")}
  set_error(t, code, problem and problem.message or "the worker that ran it was lost", true)
  if problem then book_run(t, now, not ends) end -- of a lost worker nobody knows how long it ran
  if ends then return finish(t, act, "dead_letter", now, detail) end
  put_back(t)
  event(t, act, "executing", "queued", now, detail)
end

-- May the caller with this fence (or, without one, this worker) report the end of the run of `t`? A word, or nil for yes.
local function refused(t, worker, fence)
  if not t then return "unknown_task" end
  local known = t.known
  local stopping = known.stopping
  if stopping and (fence == stopping or (not fence and worker == known.worker)) then
    drop_lease(t) -- cancelled while it ran: the report shows that it runs no more
    return "fenced"
  end
  if fence and fence == known.reported then return "repeated" end
  return not is_held_by(t, worker, fence) and "fenced" or nil
end
