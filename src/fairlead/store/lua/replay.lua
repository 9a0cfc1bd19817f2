-- Queue a failed or dead-lettered task again, as at the beginning.
--
-- KEYS     meta
-- ARGV     id clock
-- RETURNS  ok | not_replayable <state> | step_of_job | unknown_task | uninitialised
-- FLAGS    allow-oom
-- USES     endings waking

local now = begin(clock)
if not now then return {"uninitialised"} end
local t = task_record(id)
if not t then return {"unknown_task"} end
local state = get(t, "state")
if state ~= "failed" and state ~= "dead_letter" then return {"not_replayable", state} end

if get(t, "step") then return {"step_of_job"} end

if get(t, "timeout_given") then
  put(t, "timeout", number(t, "timeout_given"))
  put(t, "timeout_given", nil)
end
revive(t, now, {"retries", "crashes", "error", "finished", "worker", "started", "deadline", "progress"})
settle_and_commit()
return {"ok"}
