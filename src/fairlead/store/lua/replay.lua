-- Queue a failed or dead-lettered task again, with all counters reset, and with other `parameters` unless these are "". With a step its
-- job is resumed, whatever the error was.
--
-- ARGV     id parameters clock
-- RETURNS  ok queued (ids of tasks) | not_replayable state | step_of_job job status? (none: its record is gone) | conflict
--          | invalid field code message | unknown_task | uninitialised
-- FLAGS    allow-oom

local t = records.find(id)
if not t then return {answer = "unknown_task"} end
local state = get(t, "state")
if state ~= "failed" and state ~= "dead_letter" or t.known.facts.interactive then return {answer = "not_replayable", state = state} end

local queued = {id}
if t.known.facts.step then
  if parameters ~= "" then
    return types.invalid("parameters", "invalid_input", "a step has none of its own: its job has the input")
  end
  local job = jobs.job_of(t)
  local status = job and get(job, "status")
  if status ~= "FAILED" then return {answer = "step_of_job", job = t.known.facts.job_id, status = status or nil} end
  local problem = stages.refusal_of_resume(job, true)
  if problem then return problem end
  local _, steps = stages.resume(job, now)
  queued = steps
else
  local problem = submits.refusal_of_return(t)
  if problem then return problem end
  if parameters ~= "" then
    put(t, "parameters", parameters)
    records.change(t, "size", #parameters)
  end
  endings.revive(t, now)
end
waking.reindex_and_commit()
return {answer = "ok", queued = queued}
