-- Jobs: the effect of a step, which is a task, on its job. A stage is over when all its steps have ended; only then does the job
-- continue or end. So none of its steps runs when the job can be resumed.

function jobs.record(id)
  local job = whole(keys.job(id))
  if not job or not get(job, "status") then return nil end
  job.id = id
  return job
end

function jobs.job_of(t)
  local facts = t.known.facts
  return facts.step and jobs.record(facts.job_id)
end

function jobs.reserves(job, place)
  return get(job, "reserved_" .. place) or setting("started_first") == 1
end

-- The tag and seq of the very first step, and the stride between steps. The steps from this one on are charged now.
local function reserve(job, t, place, stride)
  local step = tonumber(t.known.facts.step)
  local count = number(job, "total") - step
  local tag, seq = fair_share.reserve(place, t.known.facts.fair or "", stride, count), next_number("seq", count)
  return int(tag - step * stride) .. " " .. int(seq - step) .. " " .. int(stride)
end

-- The tag and the seq of a step that joins `place`. The first step of a job there reserves those of all that follow: they go
-- ahead of later work of their account, also when they are promoted.
function jobs.position(job, t, place, stride)
  local field, step = "reserved_" .. place, tonumber(t.known.facts.step)
  local reserved = get(job, field)
  if not reserved then
    reserved = reserve(job, t, place, stride)
    put(job, field, reserved)
  end
  local tag, seq, apart = string.match(reserved, "(%S+) (%S+) (%S+)")
  return fair_share.reserved_tag(place, tag + step * apart), seq + step
end

-- The tag and the seq that a step would have if it joined `place` now. Nothing is changed.
function jobs.next_position(job, step, place, account)
  local tag, seq, apart = string.match(get(job, "reserved_" .. place) or "", "(%S+) (%S+) (%S+)")
  if not tag then return fair_share.next_tag(place, account), math.huge end
  return fair_share.reserved_tag(place, tag + step * apart), seq + step
end

-- In bytes, without the overhead of the server.
function jobs.size_of(job)
  local size = 0
  for _, value in pairs(job.known) do
    if type(value) == "string" then size = size + #value end
  end
  return size
end

function jobs.stages_of(job)
  return cmsgpack.unpack(get(job, "plan"))
end

function jobs.end_job(job, status, now)
  change_count(act.meta, "jobs_open", -1)
  put(job, "status", status)
  put(job, "finished", now)
  job.ttl = setting(status == "FAILED" and "dead_ttl" or "finished_ttl")
  if status == "FAILED" then retention.keep_dead_job(job) else retention.keep_job(job) end
  idempotency.note_end(get(job, "key"), job.id, status, number(job, "priority"), number(job, "effective"))
end

-- A permanent error replaces a retryable one.
function jobs.set_job_error(job, problem)
  local known = get(job, "error")
  if known and not (cjson.decode(known).retryable and not problem.retryable) then return end
  put(job, "error", cjson.encode(problem))
end

function jobs.end_step(job, now)
  put(job, "open", number(job, "open") - 1)
  put(job, "progressed", now)
  return number(job, "open") == 0
end

-- It used up its attempts, failed for good, was cancelled, or was not started in time. The job can be resumed as it is unless the step
-- failed for good: then the same would happen again until its cause is fixed.
function jobs.step_failed(job, t, state, now)
  local over = jobs.end_step(job, now)
  if state == "cancelled" then
    put(job, "cancelled", 1)
  else
    local problem = cjson.decode(get(t, "error"))
    local step = tonumber(t.known.facts.step)
    jobs.set_job_error(job, {code = problem.code, message = problem.message, retryable = problem.retriable, step = step})
  end
  if over then jobs.end_job(job, get(job, "cancelled") and "CANCELLED" or "FAILED", now) end
end

function jobs.step_started(t, now)
  local job = jobs.job_of(t)
  if not job then return end
  if get(job, "status") == "PENDING" then put(job, "status", "RUNNING") end
  put(job, "attempts:" .. t.known.facts.step, records.attempt(t))
  put(job, "progressed", now)
end

-- Of all its steps so far, by which jobs are found that need a limit.
local function note_needs(job, text)
  local known = get(job, "limits") or ""
  if not text or text == known then return end
  local units = {}
  for _, needs in ipairs({limits.needs(known), limits.needs(text)}) do
    for _, need in ipairs(needs) do units[need.name] = math.max(need.units, units[need.name] or 0) end
  end
  put(job, "limits", (types.write_needs(units)))
end

-- The job keeps what became of a step, because the record of the step may expire long before that of the job: its state, when it was
-- queued, started and finished last, how long it has `waited`, and while it waits `since` when. A delay before a retry is a wait too.
function jobs.step_moved(t, from, state, now)
  local job = jobs.job_of(t)
  if not job then return end
  local field = "step:" .. t.known.facts.step
  unpack_field(job, field)
  local step = from and get(job, field)
  if not step or step.finished then step = {queued = now, waited = 0} end -- it is new, or queued again because its job was resumed
  local waits = state == "queued" or state == "delayed"
  if step.since and not waits then step.waited = step.waited + now - step.since end
  step.since = waits and (step.since or now) or nil
  if state == "executing" then step.started = now elseif not waits then step.finished = now end
  step.state = state
  put(job, field, step)
  note_needs(job, t.known.facts.limits)
end

-- The same for a step that an older version has queued, as far as its record says it.
function jobs.know_step(t)
  local known, facts = t.known, t.known.facts
  local job, field = facts.step and hash(keys.job(facts.job_id)), "step:" .. (facts.step or "")
  if not job or not get(job, "status") or get(job, field) then return end
  local queued, started, finished = tonumber(facts.created), tonumber(known.started), number(t, "finished")
  put(job, field, {
    state = known.state, queued = queued, started = started, finished = finished,
    since = not started and not finished and queued or nil, waited = (started or finished or queued) - queued,
  })
end

-- The effective priority of a job never falls: a later step starts at the base again, but is as old as its job.
function jobs.step_promoted(t, class, now)
  local job = jobs.job_of(t)
  if not job or class >= number(job, "effective") then return end
  put(job, "effective", class)
  put(job, "promoted", now)
end

-- What the worker of a step gets: the input of the job and the results of all earlier stages.
function jobs.step_parameters(job)
  local context = {}
  for _, stage in ipairs(jobs.stages_of(job)) do
    for _, spec in ipairs(stage) do
      local step = tonumber(spec.facts.step)
      local result = step < number(job, "step") and get(job, "result:" .. int(step))
      if result then context[#context + 1] = '"step_' .. int(step) .. "_" .. spec.step_name .. '":' .. result end
    end
  end
  return '{"params":' .. get(job, "input") .. ',"context":{' .. table.concat(context, ",") .. "}}"
end
