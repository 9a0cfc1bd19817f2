-- The recorder has stored the events up to the end of this entry: drop those that the estimator has learnt from, too. "": there is a
-- recorder, which has not stored anything yet.
--
-- ARGV     last
-- RETURNS  ok dropped kept (recorded, but not dropped yet) | uninitialised
-- FLAGS    allow-oom

local ESTIMATOR_GONE = 600000 -- ms
local recorded, gone = number(act.meta, "recorded"), number(act.meta, "events_gone") or 0

local function end_of(entry)
  local from, count = string.match(entry, "^(%d+)-(%d+)$")
  return tonumber(from) + tonumber(count) - 1
end

-- The estimator keeps its position every few seconds, and later while it makes the forecast of a deep queue.
local function learnt()
  local kept = hash(keys.learnt)
  local silent = math.floor(epochs.micros_now() / 1000) - (number(kept, "kept_at") or 0)
  local entry = math.abs(silent) < ESTIMATOR_GONE and string.match(get(kept, "position") or "", "%d+-%d+")
  return entry and end_of(entry) or math.huge
end

if last == "" then
  if not recorded then put(act.meta, "recorded", gone) end
  commit()
  return {answer = "ok", dropped = 0, kept = 0}
end
if #call("XRANGE", keys.events, last, last) == 0 then return {answer = "ok", dropped = 0, kept = 0} end -- it was dropped before, or never existed
local upto = math.max(end_of(last), recorded or 0)
local dropped_to = math.max(gone, math.min(upto, learnt()))
put(act.meta, "recorded", upto)
if dropped_to > gone then
  put(act.meta, "events_gone", dropped_to)
  write({"XTRIM", keys.events, "MINID", int(dropped_to + 1)})
end
commit()
return {answer = "ok", dropped = dropped_to - gone, kept = upto - dropped_to}
