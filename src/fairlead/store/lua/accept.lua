-- An operator accepts the data as it is: `new` when there is none, `restored` when it is older or different than before. Work begins
-- when the earlier leases have ended (`hold`, ms after the loss was noticed): until then handlers may still run that the store does
-- not know.
-- Tasks and jobs are numbered above all that were listed before: above `made`, which the history knows, or else the time in ms.
--
-- ARGV     how token hold made
-- RETURNS  ok opens_at (ms) now | not_empty | empty | restoring
-- FLAGS    allow-oom
-- GUARD    off

whole(keys.meta)
if get(act.meta, "restoring") then return {answer = "restoring"} end
local is_empty = not get(act.meta, "schema")
if how == "new" and not is_empty then return {answer = "not_empty"} end
if how == "restored" and is_empty then return {answer = "empty"} end

local now = math.floor(epochs.micros_now() / 1000)
local opens_at = (number(act.meta, "sealed_at") or now) + tonumber(hold)
epochs.begin(how, token)
epochs.raise_fence()
put(act.meta, "made", math.max(number(act.meta, "made") or 0, tonumber(made), now))
put(act.meta, "sealed", nil)
put(act.meta, "sealed_at", nil)
put(act.meta, "opens_at", opens_at > now and opens_at or nil)
hashes.write()
unit.flush()
return {answer = "ok", opens_at = math.max(opens_at, now), now = now}
