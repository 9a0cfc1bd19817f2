-- Accept results; each queues the next stage of its job, or neither happens.
--
-- ARGV     worker reports clock
-- RETURNS  ok rows {ok state | repeated state | fenced state | unknown_task | conflict | invalid field code message}... | uninitialised
-- FLAGS    allow-oom

local function complete(t, report)
  local job = jobs.job_of(t)
  local problem = job and stages.check_context(job, report.result)
  if problem then return problem end
  local known = t.known
  endings.learn_run(t, now)
  leases.drop(t)
  put_all(t, {"reported", known.fence, "result", report.result})
  if report.truncated then put(t, "truncated", 1) end
  if known.retries or known.crashes or known.losses then -- of an earlier run
    put(t, "error", nil)
    put(t, "traceback", nil)
  end
  local following = job and stages.step_completed(job, t, report.result, now)
  endings.finish(t, "complete", "completed", now, endings.with_run(t, {worker = known.worker}))
  if following then stages.queue_steps(job, following, now) end
  return {answer = "ok", state = "completed"}
end

local rows = {}
for i, report in ipairs(cmsgpack.unpack(reports)) do
  local t = records.find(report.id)
  local word = endings.refused(t, worker, report.fence)
  if word == "repeated" and get(t, "state") ~= "completed" then word = "fenced" end -- it failed or was released before
  rows[i] = word and {answer = word, state = t and get(t, "state")} or complete(t, report)
end
waking.reindex_and_commit()
return {answer = "ok", rows = rows}
