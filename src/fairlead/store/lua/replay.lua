-- Queue a failed or dead-lettered task again, with all counters reset.
--
-- ARGV     id clock
-- RETURNS  ok | not_replayable state | step_of_job | invalid field code message | unknown_task | uninitialised
-- FLAGS    allow-oom

local t = records.find(id)
if not t then return {answer = "unknown_task"} end
local state = get(t, "state")
if state ~= "failed" and state ~= "dead_letter" then return {answer = "not_replayable", state = state} end

if t.known.facts.step then return {answer = "step_of_job"} end
local problem = submits.refusal_of_return(t)
if problem then return problem end

if get(t, "timeout_given") then
  records.change(t, "timeout", number(t, "timeout_given"))
  put(t, "timeout_given", nil)
end
endings.revive(t, now, {"retries", "crashes", "losses", "error", "traceback", "finished", "worker", "started", "deadline", "progress"})
waking.reindex_and_commit()
return {answer = "ok"}
