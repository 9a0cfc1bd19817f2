-- The outbox: every transition, in the order of the act, appended and published with it; and what is only published.
--
-- USES     jobs

local events, told = {}, {}

-- Numbers what is told of a task, without a gap. A record that does not say has told of its submit alone: most of those that
-- wait are like that, and pay nothing for it.
local function next_told(t)
  put(t, "told", (number(t, "told") or 1) + 1)
  return number(t, "told")
end

-- To whom it is told besides: the job of a step, which numbers what it is told by itself.
local function told_to_job(t, act)
  local job = job_of(t)
  if not job then return cjson.null end
  local seq, step = (number(job, "told") or 0) + 1, number(t, "step")
  if act == "complete" then put(job, "done:" .. int(step), seq) end
  if get(job, "finished") then seq = seq + 1 end -- the end of the step, then that of the job
  put(job, "told", seq)
  return {get(t, "job_id"), seq, step, get(job, "status"), number(job, "effective")}
end

-- `detail` is a table of small facts for history, or nil.
local function event(t, act, from, to, now, detail)
  local seq = from and next_told(t) or 1
  events[#events + 1] = {t.id, act, from or "", to, now, number(t, "fence") or 0, detail and cjson.encode(detail) or "{}", seq, told_to_job(t, act)}
end

-- For live listeners alone, and nothing to them but `detail`, which is JSON. Each is a message of its own: it may be large.
-- Answers its number.
local function tell(t, act, now, detail)
  local seq, state = next_told(t), get(t, "state")
  told[#told + 1] = cjson.encode({{t.id, act, state, state, now, number(t, "fence"), detail, seq, told_to_job(t, act)}})
  return seq
end

local function write_events()
  for _, message in ipairs(told) do write({"PUBLISH", prefix .. "live", message}) end
  if #events == 0 then return end
  for _, e in ipairs(events) do
    local entry = {"XADD", events_key, "*", "task", e[1], "act", e[2], "from", e[3], "to", e[4], "at", e[5], "fence", e[6], "detail", e[7]}
    if e[9] ~= cjson.null then
      for _, fact in ipairs({"job", e[9][1], "step", e[9][3], "status", e[9][4]}) do entry[#entry + 1] = fact end
    end
    write(entry)
  end
  -- Nobody has consumed for long: the oldest go, and meta.lost says how many. A recorder trims what it has stored.
  local most = setting("max_events")
  local over = call("XLEN", events_key) + #events - most
  if over > 0 then
    write({"HINCRBY", meta_key, "lost", over})
    write({"XTRIM", events_key, "MAXLEN", most})
  end
  write({"PUBLISH", prefix .. "live", cjson.encode(events)})
end
on_commit(write_events)
