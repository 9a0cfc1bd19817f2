-- Submit the task of a cron's next tick, if nobody has: its last tick is compared and set in the same step.
--
-- ARGV     name previous tick task clock
-- RETURNS  ok { ok <id> <state> | exists <id> <state> <priorities, when its record is gone> | passed | conflict | invalid <field> <code> <message>
--          | queue_full | too_many_types <setting> <waiting> <ms in which a task ends or ""> } | uninitialised

local hash, get, put = hashes.hash, hashes.get, hashes.put
local begin = acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
local crons, spec = hash(keys.crons), cmsgpack.unpack(task)

local function answer()
  local is_next = get(crons, name) == previous
  -- The task is there: its caller did not hear the answer to this very call, and hears it now.
  if not is_next and not records.find(spec.id) then return {"passed"} end
  if is_next and tonumber(tick) > now then return types.invalid("tick", "too_early", "is still to come") end
  local submitted = submits.submit(spec, now)
  -- A refused task leaves the cron where it is: its tick counts as missed, as if nobody had been there.
  if is_next and (submitted[1] == "ok" or submitted[1] == "exists") then put(crons, name, tick) end
  return submitted
end

local answered = answer()
waking.settle_and_commit()
return {"ok", answered}
