-- The outbox: every transition, in the order of the act, appended and published with it; and what is only published.
--
-- USES     jobs

local events, told = {}, {}

-- Numbers what is told of a task, without a gap. A record that does not say has told of its submit alone: most of those that
-- wait are like that, and pay nothing for it.
local function next_told(t)
  local seq = (tonumber(t.known.told) or 1) + 1
  put(t, "told", seq)
  return seq
end

-- To whom it is told besides: the job of a step, which numbers what it is told by itself.
local function told_to_job(t, act)
  local job = job_of(t)
  if not job then return false end
  local seq, step = (number(job, "told") or 0) + 1, number(t, "step")
  if act == "complete" then put(job, "done:" .. int(step), seq) end
  if get(job, "finished") then seq = seq + 1 end -- the end of the step, then that of the job
  put(job, "told", seq)
  return {get(t, "job_id"), seq, step, get(job, "status"), number(job, "effective")}
end

-- `detail` is a table of small facts for history, or nil.
local function event(t, act, from, to, now, detail)
  local seq = from and next_told(t) or 1
  events[#events + 1] = {t.id, act, from or "", to, now, tonumber(t.known.fence) or 0, detail or "", seq, told_to_job(t, act)}
end

-- For live listeners alone, and nothing to them but `detail`, which is JSON. Each is a message of its own: it may be large.
-- Answers its number.
local function tell(t, act, now, detail)
  local seq, state = next_told(t), get(t, "state")
  told[#told + 1] = cmsgpack.pack({{t.id, act, state, state, now, number(t, "fence"), detail, seq, told_to_job(t, act)}})
  return seq
end

-- One entry for all events of the act. Its id is the number of the first, and how many they are.
local function append_events(packed)
  local count, most, last = #events, setting("max_events"), number(meta, "events") or 0
  put(meta, "events", last + count)
  if count > most then
    local latest = {}
    for i = 1, most do latest[i] = events[count - most + i] end
    write({"XADD", events_key, int(last + count - most + 1) .. "-" .. int(most), "events", cmsgpack.pack(latest)})
  else
    write({"XADD", events_key, int(last + 1) .. "-" .. int(count), "events", packed})
  end
  -- Nobody has consumed for long: the oldest go, act by act, and meta.lost says how many. A recorder trims what it has stored.
  local gone = number(meta, "events_gone") or 0
  local over = last + count - gone - most
  if over > 0 then
    put(meta, "lost", (number(meta, "lost") or 0) + over)
    put(meta, "events_gone", gone + over)
    write({"XTRIM", events_key, "MINID", int(gone + over + 1)})
  end
end

local function write_events()
  for _, message in ipairs(told) do write({"PUBLISH", prefix .. "live", message}) end
  if #events == 0 then return end
  local packed = cmsgpack.pack(events)
  append_events(packed)
  write({"PUBLISH", prefix .. "live", packed})
end
on_commit(write_events)
