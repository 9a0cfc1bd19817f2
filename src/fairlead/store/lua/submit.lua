-- Accept tasks: each is queued or delayed, or refused without a trace.
--
-- KEYS     meta
-- ARGV     tasks clock
-- RETURNS  ok { ok <id> <state> <position and limits without room, when queued> | exists <id> <state> | conflict
--          | invalid <field> <code> <message> | queue_full <setting> <waiting> <ms in which a task ends or ""> }... | uninitialised
-- USES     submitting handing

local now = begin(clock)
if not now then return {"uninitialised"} end

local specs, answers = cmsgpack.unpack(tasks), {}
-- of several the best one would go first, whichever that is
if #specs == 1 then find_taker, hand_straight = offer_straight, start_straight end
for i, spec in ipairs(specs) do answers[i] = submit_task(spec, now) end
hand_over = hand_to
settle_and_commit()
return {"ok", answers}
