-- Accept failures: retried after a back-off while retries are left, otherwise dead-lettered; a permanent failure is final, a
-- crash is retried at once up to the crash limit.
--
-- ARGV     worker reports clock
-- RETURNS  ok rows {ok state | repeated state | fenced state | unknown_task}... | uninitialised
-- FLAGS    allow-oom

local rows = {}
for i, report in ipairs(cmsgpack.unpack(reports)) do
  local t = records.find(report.id)
  local word = endings.refused(t, worker, report.fence)
  if not word then
    put(t, "reported", get(t, "fence"))
    if report.crashed then
      endings.crash_run(t, "fail", now, report)
    else
      endings.learn_run(t, now)
      endings.fail_run(t, "fail", report, now)
    end
  end
  rows[i] = {answer = word or "ok", state = t and get(t, "state")}
end
waking.reindex_and_commit()
return {answer = "ok", rows = rows}
