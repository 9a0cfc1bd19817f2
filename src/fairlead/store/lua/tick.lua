-- Submit the task of a cron's next tick, once: its last tick is compared and set in the same step.
--
-- ARGV     name previous tick task clock
-- RETURNS  ok row {ok id state position? blocked_by? unserved? (a map of type and capabilities: no worker runs it yet)
--          estimate? {p50 p90 at} (ms)
--          | exists id state unserved? priority? effective? (these two when its record is gone) | passed | conflict
--          | invalid field code message | wait_too_long estimate most priority | deadline_unlikely estimate most
--          | queue_full setting waiting room_in? (ms)
--          | too_many_types setting waiting room_in? | evicting policy} | uninitialised

local crons, spec = hash(keys.crons), cmsgpack.unpack(task)

local function submit()
  local is_next = get(crons, name) == previous
  -- The task exists: the reply to this request was lost, so it is sent again.
  if not is_next and not records.find(spec.id) then return {answer = "passed"} end
  if is_next and tonumber(tick) > now then return types.invalid("tick", "too_early", "is in the future") end
  local submitted = submits.submit(spec, now)
  -- A refused task leaves the cron as it is: its tick counts as missed.
  if is_next and (submitted.answer == "ok" or submitted.answer == "exists") then put(crons, name, tick) end
  return submitted
end

local row = submit()
waking.reindex_and_commit()
return {answer = "ok", row = row}
