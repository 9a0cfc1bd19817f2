-- Delete a failed or dead-lettered task now, not at the end of its retention, and free its idempotency key.
--
-- ARGV     id clock
-- RETURNS  ok | not_purgeable state | step_of_job | unknown_task | uninitialised
-- FLAGS    allow-oom

local t = records.find(id)
if not t then return {answer = "unknown_task"} end
local state = get(t, "state")
if state ~= "failed" and state ~= "dead_letter" then return {answer = "not_purgeable", state = state} end
if t.known.facts.step then return {answer = "step_of_job"} end

retention.unlist_dead(t)
write({"UNLINK", keys.task(id), keys.output(id)})
idempotency.free(t.known.facts.key, id)
commit()
return {answer = "ok"}
