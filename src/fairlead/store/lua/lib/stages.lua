-- How a job continues: the result of a step joins its context, and after the last step of a stage the next stage is queued.

local MOST_CONTEXT = 1048576 -- bytes, of all results of a job

-- The steps of a stage that have no result yet, and the first problem with one. Nothing is changed.
function stages.missing_steps(job, stage)
  local missing = {}
  for _, spec in ipairs(stage) do
    if not get(job, "result:" .. spec.facts.step) then missing[#missing + 1] = spec end
  end
  return missing, submits.refusal_of_all(missing)
end

-- Queues these steps; later ones are as old as the job is.
function stages.queue_steps(job, specs, now)
  local later = number(job, "step") > 0
  for _, spec in ipairs(specs) do
    spec.arrival = later and number(job, "created") or nil
    spec.facts.factor = number(job, "factor")
    submits.submit(spec, now, true)
  end
  put(job, "open", #specs)
end

-- The steps to queue next; nil when they cannot be queued, and the job has failed.
function stages.next_steps(job, index, now)
  local stage = jobs.stages_of(job)[index]
  put(job, "stage", index)
  put(job, "step", tonumber(stage[1].facts.step))
  local missing, problem = stages.missing_steps(job, stage)
  if not problem then return missing end
  -- for example, a limit is gone: the results stay, and the job can be resumed once that is fixed
  local code, message = problem.code or problem.answer, problem.message or "its step cannot be queued"
  jobs.set_job_error(job, {code = code, message = message, retryable = true, step = number(job, "step")})
  put(job, "open", 0)
  jobs.end_job(job, "FAILED", now)
end

-- A refusal, or nil.
function stages.check_context(job, result)
  local size = #result
  for field, value in pairs(job.known) do
    if value and string.sub(field, 1, 7) == "result:" then size = size + #value end
  end
  if size > MOST_CONTEXT then
    local what = "the results of its job would be " .. int(size) .. " bytes; at most " .. int(MOST_CONTEXT) .. " are kept"
    return types.invalid("result", "too_large", what)
  end
end

-- A service returns data and metrics itself.
local function as_context(task_type, result, ran)
  local by_service = string.sub(task_type, 1, 8) == "service:" and string.sub(result, 1, 8) == '{"data":'
  if by_service then return '{"status":"SUCCESS",' .. string.sub(result, 2) end
  return '{"status":"SUCCESS","data":' .. result .. ',"metrics":{"execution_time_ms":' .. int(ran) .. "}}"
end

function stages.keep_result(job, step, task_type, result, ran)
  put(job, "result:" .. step, as_context(task_type, result, ran))
end

-- Returns the steps to queue after the event of this one.
function stages.step_completed(job, t, result, now)
  stages.keep_result(job, t.known.facts.step, t.known.facts.type, result, now - number(t, "started"))
  return jobs.end_step(job, now) and stages.end_stage(job, now) or nil
end

-- All steps of the stage have ended. Returns the steps to queue, or nil: the job has ended.
function stages.end_stage(job, now)
  local index = number(job, "stage") + 1
  if get(job, "error") then
    jobs.end_job(job, "FAILED", now)
  elseif index > number(job, "stages") then
    put(job, "step", number(job, "total"))
    jobs.end_job(job, "COMPLETED", now)
  else
    return stages.next_steps(job, index, now)
  end
end

-- Why a job cannot be resumed, or nil. One that failed for good is resumed by `force` only. Nothing is changed.
function stages.refusal_of_resume(job, force)
  local status, failed = get(job, "status"), get(job, "error")
  if status ~= "FAILED" or not (force or cjson.decode(failed).retryable) then
    return {answer = "not_resumable", id = job.id, status = status, error = failed}
  end
  local missing, problem = stages.missing_steps(job, jobs.stages_of(job)[number(job, "stage")])
  for _, spec in ipairs(missing) do
    local t = not problem and records.find(spec.id)
    problem = problem or t and submits.refusal_of_return(t)
  end
  return problem
end

-- Queues steps that have no result, with all their attempts. Returns their ids.
function stages.queue_again(job, specs, now)
  local fresh, queued = {}, {}
  for _, spec in ipairs(specs) do
    local t = records.find(spec.id)
    if t then
      endings.revive(t, now)
      if spec.max_wait then leases.wait_at_most_until(t, now + spec.max_wait) end
    else
      fresh[#fresh + 1] = spec -- it could not be queued before, or its record has expired
    end
    queued[#queued + 1] = spec.id
  end
  stages.queue_steps(job, fresh, now)
  put(job, "open", #queued)
  return queued
end

-- Continues a failed job at the stage that failed, with all results so far. Returns the names of the steps of that stage that are not
-- run again, and the ids of those that are.
function stages.resume(job, now)
  local stage = jobs.stages_of(job)[number(job, "stage")]
  local done, started = {}, number(job, "stage") > 1
  for _, spec in ipairs(stage) do
    started = started or get(job, "attempts:" .. spec.facts.step) -- any step: the first may be the one that could not be queued
    if get(job, "result:" .. spec.facts.step) then done[#done + 1] = "step_" .. spec.facts.step .. "_" .. spec.step_name end
  end
  change_count(act.meta, "jobs_open", 1)
  local queued = stages.queue_again(job, stages.missing_steps(job, stage), now)
  put(job, "error", nil)
  put(job, "finished", nil)
  put(job, "effective", number(job, "priority"))
  put(job, "progressed", now)
  put(job, "status", started and "RUNNING" or "PENDING")
  job.persist = true
  remove(ordered(keys.deadjobs), job.id)
  return done, queued
end
