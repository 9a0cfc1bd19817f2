-- End a task by request; with a step its job, and all that runs of it.
--
-- ARGV     id clock
-- RETURNS  ok <worker that must stop or ""> | already_finished <state> | unknown_task | uninitialised
-- FLAGS    allow-oom

local get = hashes.get
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
local t = records.find(id)
if not t then return {"unknown_task"} end
local state = get(t, "state")
if state == "cancelled" then return {"ok", get(t, "stopping") and get(t, "worker") or ""} end
if state ~= "queued" and state ~= "delayed" and state ~= "executing" then return {"already_finished", state} end

local stopping = cancels.cancel(t, now)
local job = jobs.job_of(t)
if job then cancels.cancel_steps(job, now) end
waking.settle_and_commit()
return {"ok", stopping}
