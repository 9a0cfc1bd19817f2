-- The outbox: every transition, in the order of the act, appended and published with it; and what is only published.

events.MOST_CHUNKS = 1000 -- of the output of a task; the oldest are dropped

-- Numbers the events of a task without a gap. A record without the field has only the event of its submit: most waiting tasks are
-- like that, and pay nothing for it.
local function next_event_seq(t)
  local seq = (tonumber(t.known.told) or 1) + 1
  put(t, "told", seq)
  return seq
end

-- The same event for the job of a step, which numbers its events separately; false when the task is not a step.
local function job_event(t, verb)
  local job = jobs.job_of(t)
  if not job then return false end
  local seq, step = (number(job, "told") or 0) + 1, tonumber(t.known.facts.step)
  if verb == "complete" then put(job, "done:" .. int(step), seq) end
  if get(job, "finished") then seq = seq + 1 end -- the end of the step, then that of the job
  put(job, "told", seq)
  return {t.known.facts.job_id, seq, step, get(job, "status"), number(job, "effective")}
end

-- For the log of the caller: nothing that a client or a handler chose freely, but for names and codes.
local function note_transition(t, verb, from, to, detail)
  local facts = t.known.facts
  act.transitions[#act.transitions + 1] = {
    act = verb, task = t.id, type = facts.type, before = from, after = to, fence = tonumber(t.known.fence), worker = t.known.worker or nil, job = facts.job_id, step = facts.step, trace = facts.trace_id,
    code = detail and detail.code,
  }
end

-- `detail` is a table of small facts for history, or nil.
function events.add(t, verb, from, to, now, detail)
  local seq = from and next_event_seq(t) or 1
  if from ~= to then jobs.step_moved(t, from, to, now) end
  metrics.follow(t, verb, from, to, now, detail)
  if setting("log_transitions") == 1 then note_transition(t, verb, from, to, detail) end
  act.events[#act.events + 1] = {t.id, verb, from or "", to, now, tonumber(t.known.fence) or 0, detail or "", seq, job_event(t, verb)}
end

-- Of what happened before a loss of data, which only the job of the task knows: the job is not changed.
function events.add_lost(t, verb, from, to, now)
  act.events[#act.events + 1] = {t.id, verb, from, to, now, number(t, "fence") or 0, {restored = true}, next_event_seq(t), false}
end

-- For live subscribers only: `detail` is JSON, and each event is a separate message because it may be large. Returns its number.
function events.publish(t, verb, now, detail)
  local seq, state = next_event_seq(t), get(t, "state")
  act.messages[#act.messages + 1] = cmsgpack.pack({{t.id, verb, state, state, now, number(t, "fence"), detail, seq, job_event(t, verb)}})
  return seq
end

-- There are too many events: the oldest entries are dropped up to this event, or to the end of the entry that has it. Events among them
-- that are not recorded are counted in meta.lost. `last`: before the entry that is about to be written.
local function drop_oldest(gone, upto, last)
  local first_kept = call("XRANGE", keys.events, int(upto + 1), "+", "COUNT", 1)[1]
  if first_kept then upto = tonumber(string.match(first_kept[1], "^%d+")) - 1 else upto = math.max(upto, last) end
  local lost = upto - math.max(gone, number(act.meta, "recorded") or 0)
  if lost > 0 then put(act.meta, "lost", (number(act.meta, "lost") or 0) + lost) end
  put(act.meta, "events_gone", upto)
  write({"XTRIM", keys.events, "MINID", int(upto + 1)})
end

-- One entry for all events of the act. Its id is the number of the first event and the count of events.
local function append_events(packed)
  local count, most, last = #act.events, memory.most_events(setting("max_events")), number(act.meta, "events") or 0
  put(act.meta, "events", last + count)
  if count > most then
    local latest = {}
    for i = 1, most do latest[i] = act.events[count - most + i] end
    write({"XADD", keys.events, int(last + count - most + 1) .. "-" .. int(most), "events", cmsgpack.pack(latest)})
  else
    write({"XADD", keys.events, int(last + 1) .. "-" .. int(count), "events", packed})
  end
  local gone = number(act.meta, "events_gone") or 0
  if last + count - gone > most then drop_oldest(gone, last + count - most, last) end
end

function events.write()
  for _, message in ipairs(act.messages) do write({"PUBLISH", keys.prefix .. "live", message}) end
  if #act.events == 0 then return end
  local packed = cmsgpack.pack(act.events)
  append_events(packed)
  write({"PUBLISH", keys.prefix .. "live", packed})
end
