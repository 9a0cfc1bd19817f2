-- Accept failures: retried after a back-off while retries are left, else dead-lettered; a permanent one fails for good, a
-- crash is tried again at once while crashes are left.
--
-- KEYS     meta
-- ARGV     worker reports clock
-- RETURNS  ok { ok <state> | repeated <state> | fenced | unknown_task }... | uninitialised
-- FLAGS    allow-oom
-- USES     endings waking

local now = begin(clock)
if not now then return {"uninitialised"} end

local answers = {}
for i, report in ipairs(cmsgpack.unpack(reports)) do
  local t = task_record(report.id)
  local word = refused(t, worker, report.fence)
  if not word then
    put(t, "reported", get(t, "fence"))
    if report.crashed then
      crash(t, "fail", now, report)
    else
      book_run(t, now)
      fail_run(t, "fail", report, now)
    end
  end
  answers[i] = {word or "ok", t and get(t, "state")}
end
settle_and_commit()
return {"ok", answers}
