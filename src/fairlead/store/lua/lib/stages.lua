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
local function as_context(t, result, now)
  local by_service = string.sub(t.known.facts.type, 1, 8) == "service:" and string.sub(result, 1, 8) == '{"data":'
  if by_service then return '{"status":"SUCCESS",' .. string.sub(result, 2) end
  local ran = int(now - number(t, "started"))
  return '{"status":"SUCCESS","data":' .. result .. ',"metrics":{"execution_time_ms":' .. ran .. "}}"
end

-- Returns the steps to queue after the event of this one.
function stages.step_completed(job, t, result, now)
  put(job, "result:" .. t.known.facts.step, as_context(t, result, now))
  if not jobs.end_step(job, now) then return nil end
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
