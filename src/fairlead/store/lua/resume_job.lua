-- Resume a job that failed through no fault of its steps: at the stage that failed, with all results so far. A step keeps
-- its attempts; one that has a result is not run again.
--
-- ARGV     id clock
-- RETURNS  ok done (steps that are not run again) | not_resumable status error? (JSON) | invalid field code message | conflict
--          | unknown_job | uninitialised
-- FLAGS    allow-oom

local job = jobs.record(id)
if not job then return {answer = "unknown_job"} end
local failed = get(job, "status") == "FAILED" and cjson.decode(get(job, "error"))
if not failed or not failed.retryable then return {answer = "not_resumable", status = get(job, "status"), error = get(job, "error")} end

local stage = jobs.stages_of(job)[number(job, "stage")]
local missing, problem = stages.missing_steps(job, stage)
for _, spec in ipairs(missing) do
  local t = not problem and records.find(spec.id)
  problem = problem or t and submits.refusal_of_return(t)
end
if problem then return problem end

change_count(act.meta, "jobs_open", 1)
local fresh, open, done, started = {}, 0, {}, number(job, "stage") > 1
for _, spec in ipairs(stage) do
  started = started or get(job, "attempts:" .. spec.facts.step) -- any step: the first may be the one that could not be queued
  if get(job, "result:" .. spec.facts.step) then done[#done + 1] = "step_" .. spec.facts.step .. "_" .. spec.step_name end
end
for _, spec in ipairs(missing) do
  local t = records.find(spec.id)
  if t then
    endings.revive(t, now, {"error", "traceback", "finished", "worker", "started", "deadline", "progress"})
    if spec.max_wait then leases.wait_at_most_until(t, now + spec.max_wait) end
    open = open + 1
  else
    fresh[#fresh + 1] = spec -- it could not be queued before, or its record has expired
  end
end
stages.queue_steps(job, fresh, now)
put(job, "open", open + #fresh)
put(job, "error", nil)
put(job, "finished", nil)
put(job, "effective", number(job, "priority"))
put(job, "progressed", now)
put(job, "status", started and "RUNNING" or "PENDING")
job.persist = true
remove(ordered(keys.deadjobs), id)
waking.reindex_and_commit()
return {answer = "ok", done = done}
