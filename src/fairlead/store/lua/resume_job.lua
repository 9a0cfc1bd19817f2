-- Resume a failed job at the stage that failed, with all results so far. The attempts of the steps that failed begin again; a step that
-- has a result is not run again. After a permanent error only with `force` ("1").
--
-- ARGV     id force clock
-- RETURNS  ok done (steps that are not run again) | not_resumable id status error? (JSON) | invalid field code message | conflict
--          | unknown_job | uninitialised
-- FLAGS    allow-oom

local job = jobs.record(id)
if not job then return {answer = "unknown_job"} end
local problem = stages.refusal_of_resume(job, force == "1")
if problem then return problem end
local done = stages.resume(job, now)
waking.reindex_and_commit()
return {answer = "ok", done = done}
