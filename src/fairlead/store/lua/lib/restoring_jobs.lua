-- Jobs of the past become live again (restoring.lua), and agree with the steps that were restored before them or with them.

local function is_open(status) return status == "PENDING" or status == "RUNNING" end

-- The steps that it has reserved its turn for stay charged.
local function charge_reserved(job)
  for _, place in ipairs(choice.PLACES) do
    local tag, seq, apart = string.match(get(job, "reserved_" .. place) or "", "(%S+) (%S+) (%S+)")
    if tag then
      local count, spec = number(job, "total"), jobs.stages_of(job)[1][1]
      acts.raise_number("seq", tonumber(seq) + count)
      fair_share.charge(place, spec.fair or "", tag + count * apart)
    end
  end
end

function restoring_jobs.job(id, fields, now)
  local job = jobs.record(id)
  if job and restoring.is_as_new(job, fields, 0) then return {state = "kept"} end
  local known_as, was = job and get(job, "made"), job and get(job, "status")
  if was == "FAILED" then remove(ordered(keys.deadjobs), id) end
  job = job or hash(keys.job(id))
  hashes.replace(job, fields)
  job.id = id
  local status, made = get(job, "status"), known_as or listing.restore(keys.jobs, number(job, "made"), id)
  local before = number(job, "made") ~= tonumber(made) and get(job, "made") or nil
  put(job, "made", made)
  charge_reserved(job)
  change_count(act.meta, "jobs_open", (is_open(status) and 1 or 0) - (was and is_open(was) and 1 or 0))
  idempotency.restore(get(job, "key"), get(job, "digest"), id, number(job, "created"))
  if is_open(status) then
    job.persist = true
  else
    if status == "FAILED" then retention.keep_dead_job(job) else retention.keep_job(job) end
    job.ttl = math.max(1, setting(status == "FAILED" and "dead_ttl" or "finished_ttl") + number(job, "finished") - now)
    idempotency.note_end(get(job, "key"), id, status, number(job, "priority"), number(job, "effective"))
  end
  return {state = status, before = before}
end

-- What the job keeps of a step that waits is what the task says.
local function agree(job, field, state, now)
  unpack_field(job, field)
  local kept = get(job, field) or {queued = now, waited = 0}
  if kept.state == state then return end
  kept.state, kept.since, kept.finished = state, kept.since or now, nil
  put(job, field, kept)
end

local function apply_results(job, done, now)
  for _, one in ipairs(done) do
    local field = "step:" .. int(one.step)
    unpack_field(job, field)
    local kept = get(job, field) or {queued = now, waited = 0}
    if kept.state ~= "completed" then
      kept.state, kept.since, kept.finished = "completed", nil, one.finished
      put(job, field, kept)
      stages.keep_result(job, int(one.step), one.type, one.result, one.ran)
    end
  end
end

-- Job and steps were read one after the other: they may be of different instants. An open job continues with the steps of its stage that
-- wait or run; `done`: those that have completed. The others that have no end are queued again. Returns how many that were.
function restoring_jobs.settle(id, done, now)
  local job = jobs.record(id)
  if not job or not is_open(get(job, "status")) then return 0 end
  apply_results(job, done, now)
  local again, open = {}, 0
  for _, spec in ipairs(stages.missing_steps(job, jobs.stages_of(job)[number(job, "stage")])) do
    local field, t = "step:" .. int(spec.facts.step), records.find(spec.id)
    unpack_field(job, field)
    local kept, state = get(job, field), t and get(t, "state")
    if state and not restoring.is_terminal(state) then
      open = open + 1
      agree(job, field, state, now)
    elseif not (kept and restoring.is_terminal(kept.state)) then
      again[#again + 1] = spec
    end
  end
  local problem = submits.refusal_of_all(again)
  if problem then
    jobs.set_job_error(job, {code = problem.code or problem.answer, message = problem.message, retryable = true, step = number(job, "step")})
    again = {}
  end
  stages.queue_again(job, again, now)
  put(job, "open", open + #again)
  local next_steps = open + #again == 0 and stages.end_stage(job, now)
  if next_steps then stages.queue_steps(job, next_steps, now) end
  return #again
end
