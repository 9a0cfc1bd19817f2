-- Accept tasks: each is queued or delayed, or refused without a trace.
--
-- KEYS     meta
-- ARGV     tasks clock
-- RETURNS  ok { ok <id> <state> <position and limits without room, when queued> | exists <id> <state> | conflict
--          | invalid <field> <code> <message> | queue_full <setting> <waiting> <ms in which a task ends or ""> }... | uninitialised
-- USES     submitting handing

local now = begin(clock)
if not now then return {"uninitialised"} end

local answers = {}
for i, spec in ipairs(cmsgpack.unpack(tasks)) do answers[i] = submit_task(spec, now) end
hand_over = hand_to
hand_straight()
settle_and_commit()
return {"ok", answers}
