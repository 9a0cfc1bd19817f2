-- Accept tasks: each is queued or delayed, or refused without any change.
--
-- ARGV     tasks clock
-- RETURNS  ok rows {ok id state position? blocked_by? unserved? (a map of type and capabilities: no worker runs it yet)
--          estimate? {p50 p90 at} (ms)
--          | exists id state unserved? priority? effective? (these two when its record is gone) | conflict
--          | invalid field code message | wait_too_long estimate most priority | deadline_unlikely estimate most
--          | queue_full setting waiting room_in? (ms)
--          | no_capacity (for an interactive task) | too_many_types setting waiting room_in? | evicting policy}... | uninitialised

local specs, rows = cmsgpack.unpack(tasks), {}
-- of several tasks the best would go first, which is not known yet
if #specs == 1 then act.find_taker, act.hand_straight = handover.offer_straight, handover.start_straight end
for i, spec in ipairs(specs) do rows[i] = submits.submit(spec, now) end
act.hand_over = handover.hand_to
waking.reindex_and_commit()
return {answer = "ok", rows = rows}
