-- Accept tasks: each is queued or delayed, or refused without a trace.
--
-- ARGV     tasks clock
-- RETURNS  ok { ok <id> <state> <position and limits without room, when queued> | exists <id> <state> <priorities, when its record is gone> | conflict
--          | invalid <field> <code> <message> | queue_full | too_many_types <setting> <waiting> <ms in which a task ends or ""> }... | uninitialised

local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end

local specs, answers = cmsgpack.unpack(tasks), {}
-- of several the best one would go first, whichever that is
if #specs == 1 then act.find_taker, act.hand_straight = handover.offer_straight, handover.start_straight end
for i, spec in ipairs(specs) do answers[i] = submits.submit(spec, now) end
act.hand_over = handover.hand_to
waking.settle_and_commit()
return {"ok", answers}
