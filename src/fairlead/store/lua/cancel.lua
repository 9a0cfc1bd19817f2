-- End a task by request; with a step its job, and all that runs of it.
--
-- KEYS     meta
-- ARGV     id clock
-- RETURNS  ok <worker that must stop or ""> | already_finished <state> | unknown_task | uninitialised
-- FLAGS    allow-oom
-- USES     cancelling

local now = begin(clock)
if not now then return {"uninitialised"} end
local t = task_record(id)
if not t then return {"unknown_task"} end
local state = get(t, "state")
if state == "cancelled" then return {"ok", get(t, "stopping") and get(t, "worker") or ""} end
if state ~= "queued" and state ~= "delayed" and state ~= "executing" then return {"already_finished", state} end

local stopping = cancel_task(t, now)
local job = job_of(t)
if job then cancel_steps(job, now) end
settle_and_commit()
return {"ok", stopping}
