-- Name the workers that have fallen silent, each of them once. Those silent for an hour are forgotten; their records run out by
-- themselves. What they hold is freed when its leases end: until then a worker that is only cut off may run it.
--
-- ARGV     clock
-- RETURNS  ok { <worker> <seen> <tasks it holds> }... | uninitialised
-- FLAGS    allow-oom

local int, write, commit = unit.int, unit.write, acts.commit
local number, put = hashes.number, hashes.put
local setting, begin = acts.setting, acts.begin

local HOUR = 3600000
local now = begin(clock)
if not now then return {"uninitialised"} end

-- A worker's last sign only moves on, so that behind the mark nobody is left who was not named.
local mark, silent = number(act.meta, "buried") or 0, now - setting("worker_ttl")
local lost = {}
if mark < silent then
  local found = call("ZRANGEBYSCORE", keys.workers, int(mark), "(" .. int(silent), "WITHSCORES")
  for i = 1, #found, 2 do lost[#lost + 1] = {found[i], found[i + 1], call("ZCARD", keys.running(found[i]))} end
end
if #lost > 0 then put(act.meta, "buried", silent) end
write({"ZREMRANGEBYSCORE", keys.workers, "-inf", now - HOUR})
commit()
return {"ok", lost}
