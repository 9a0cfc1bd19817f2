-- Store the progress and the output of runs. Live subscribers receive it; it is not in the outbox.
--
-- ARGV     worker reports clock
-- RETURNS  ok rows {ok | fenced | unknown_task}... | uninitialised

-- `first_chunk` is the number of the first chunk within this run: when a reply was lost, chunks that are stored already come again.
local function keep_output(t, chunks, first_chunk)
  local seq, kept = number(t, "emitted") or 0, {"RPUSH", keys.output(t.id)}
  local bytes = number(t, "emitted_bytes") or 0
  local of_this_run = seq - (number(t, "emitted_before") or 0)
  for i = first_chunk and math.max(1, of_this_run - first_chunk + 2) or 1, #chunks do
    seq, bytes = seq + 1, bytes + #chunks[i]
    local event_seq = events.publish(t, "output", now, '{"seq":' .. int(seq) .. ',"chunk":' .. chunks[i] .. "}")
    kept[#kept + 1] = table.concat({"[" .. int(seq), get(t, "fence"), chunks[i], int(event_seq), int(now) .. "]"}, ",")
  end
  if #kept == 2 then return end
  put(t, "emitted", seq)
  put(t, "emitted_bytes", bytes)
  write_many(kept, 1)
  write({"LTRIM", keys.output(t.id), -events.MOST_CHUNKS, -1})
end

local function keep(report)
  local t = records.find(report.id)
  if not t then return {answer = "unknown_task"} end
  if not leases.is_held_by(t, worker, report.fence) then return {answer = "fenced"} end
  if report.progress then
    put(t, "progress", report.progress)
    events.publish(t, "progress", now, report.progress)
  end
  if report.chunks then keep_output(t, report.chunks, report.first) end
  if report.chunks and t.known.facts.interactive then sessions.note_activity(t, now) end
  return {answer = "ok"}
end

local rows = {}
for i, report in ipairs(cmsgpack.unpack(reports)) do rows[i] = keep(report) end
commit()
return {answer = "ok", rows = rows}
