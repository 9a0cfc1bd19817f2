-- Cancel a task; with a step, its job and all steps that run.
--
-- ARGV     id clock
-- RETURNS  ok worker? (that must stop) | already_finished state | unknown_task | uninitialised
-- FLAGS    allow-oom

local t = records.find(id)
if not t then return {answer = "unknown_task"} end
local state = get(t, "state")
if state == "cancelled" then return {answer = "ok", worker = get(t, "stopping") and get(t, "worker")} end
if state ~= "queued" and state ~= "delayed" and state ~= "executing" then return {answer = "already_finished", state = state} end

local stopping = cancels.cancel(t, now)
local job = jobs.job_of(t)
if job then cancels.cancel_steps(job, now) end
waking.reindex_and_commit()
return {answer = "ok", worker = stopping}
