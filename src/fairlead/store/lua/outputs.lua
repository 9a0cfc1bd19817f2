-- Return the stored chunks of the output of a task after a known one, given by its own number or by that of its event.
--
-- ARGV     id known event_seq most clock
-- RETURNS  ok chunks (each JSON: [seq, fence, chunk, seq of its event, time]) more | unknown_task | uninitialised
-- FLAGS    allow-oom

local t = hash(keys.task(id))
if not get(t, "state") then return {answer = "unknown_task"} end
local kept = call("LLEN", keys.output(id))
local first_kept = (number(t, "emitted") or 0) - kept + 1
local from, to = math.max(0, tonumber(known) + 1 - first_kept), kept
while tonumber(event_seq) > 0 and from < to do -- both numbers grow from chunk to chunk
  local middle = math.floor((from + to) / 2)
  local seq = string.match(call("LINDEX", keys.output(id), middle), ",(%d+),%d+%]$")
  if tonumber(seq) > tonumber(event_seq) then to = middle else from = middle + 1 end
end

local PIECE, MOST_BYTES = 8, 1048576
local rows, bytes, wanted = {}, 0, tonumber(most)
while #rows < wanted and from < kept and bytes < MOST_BYTES do
  local piece = call("LRANGE", keys.output(id), from, from + math.min(PIECE, wanted - #rows) - 1)
  for _, row in ipairs(piece) do
    rows[#rows + 1] = row
    bytes = bytes + #row
  end
  from = from + #piece
end
return {answer = "ok", chunks = rows, more = from < kept}
