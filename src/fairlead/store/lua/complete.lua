-- Accept results, each with the tasks that follow from it, or the next stage of its job: both happen or neither.
--
-- KEYS     meta
-- ARGV     worker reports clock
-- RETURNS  ok { ok <state> {follow-up answers} | repeated <state> | fenced | unknown_task | conflict
--          | invalid <field> <code> <message> }... | uninitialised
-- FLAGS    allow-oom
-- USES     stages waking

local now = begin(clock)
if not now then return {"uninitialised"} end

local function complete(t, report)
  local job = job_of(t)
  local problem = report.follow and refusal_of_all(report.follow) or job and check_context(job, report.result)
  if problem then return problem end
  local known, ran = t.known, book_run(t, now)
  drop_lease(t)
  learn_duration(known.type, ran)
  put_all(t, {"reported", known.fence, "result", report.result})
  if known.retries or known.crashes then put(t, "error", nil) end -- of an earlier run
  local following = job and step_completed(job, t, report.result, now)
  finish(t, "complete", "completed", now, {ran = ran, worker = known.worker})
  local followers = {}
  for i, spec in ipairs(report.follow or {}) do followers[i] = submit_task(spec, now, true) end
  if following then queue_steps(job, following, now) end
  return {"ok", "completed", followers}
end

local answers = {}
for i, report in ipairs(cmsgpack.unpack(reports)) do
  local t = task_record(report.id)
  local word = refused(t, worker, report.fence)
  if word == "repeated" and get(t, "state") ~= "completed" then word = "fenced" end -- it failed or was given back before
  answers[i] = word and {word, t and get(t, "state")} or complete(t, report)
end
settle_and_commit()
return {"ok", answers}
