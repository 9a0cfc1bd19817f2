-- Drop the events up to the end of this entry: the recorder has stored them.
--
-- ARGV     last
-- RETURNS  ok dropped | uninitialised
-- FLAGS    allow-oom

if #call("XRANGE", keys.events, last, last) == 0 then return {answer = "ok", dropped = 0} end -- it was dropped before, or never existed
local from, count = string.match(last, "^(%d+)-(%d+)$")
local upto, gone = tonumber(from) + tonumber(count) - 1, number(act.meta, "events_gone") or 0
put(act.meta, "events_gone", upto)
write({"XTRIM", keys.events, "MINID", int(upto + 1)})
commit()
return {answer = "ok", dropped = upto - gone}
