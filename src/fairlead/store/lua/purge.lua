-- Delete a failed or dead-lettered task now, not at the end of its retention, and free its idempotency key.
--
-- ARGV     id clock
-- RETURNS  ok | not_purgeable state | kept_by_job job | unknown_task | uninitialised
-- FLAGS    allow-oom

local t = records.find(id)
if not t then return {answer = "unknown_task"} end
local state = get(t, "state")
if state ~= "failed" and state ~= "dead_letter" then return {answer = "not_purgeable", state = state} end
if t.known.facts.step then return {answer = "kept_by_job", job = t.known.facts.job_id} end

retention.unlist_dead(t)
listing.remove(keys.tasks, t.known.facts.made)
write({"UNLINK", keys.task(id), keys.output(id)})
idempotency.free(t.known.facts.key, id)
commit()
return {answer = "ok"}
