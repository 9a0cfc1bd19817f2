-- Cancel a job: steps that wait are cancelled, workers that run one must stop.
--
-- ARGV     id clock
-- RETURNS  ok | already_finished status | unknown_job | uninitialised
-- FLAGS    allow-oom

local job = jobs.record(id)
if not job then return {answer = "unknown_job"} end
local status = get(job, "status")
if status == "COMPLETED" or status == "FAILED" then return {answer = "already_finished", status = status} end
if status ~= "CANCELLED" then
  cancels.cancel_steps(job, now)
  waking.reindex_and_commit()
end
return {answer = "ok"}
