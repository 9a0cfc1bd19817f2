-- How much waits, runs and ended lately.
--
-- ARGV     clock
-- RETURNS  ok <now> { <place> <depth> <oldest arrival or ""> }... { <worker> <running> <state> <seen> <capacity> <reserve>
--          <types> <capabilities> <name> <version> }... { <state> <ended> }... <delayed> <lost events> <missing records>
--          | uninitialised

local int = unit.int
local get = hashes.get
local setting, begin = acts.setting, acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end

local WORKER_FIELDS = {"state", "seen", "capacity", "reserve", "types", "capabilities", "name", "version"}
local UNKNOWN = {state = "gone", seen = "0", capacity = "0", reserve = "0", types = "*"} -- its record has run out

local places, list, ended = {}, {}, {}
for i, place in ipairs(choice.PLACES) do
  local oldest = call("ZRANGE", keys.age(place), 0, 0, "WITHSCORES")[2] or ""
  places[i] = {place, backlog.standing_at(place), oldest}
end
for i, id in ipairs(call("ZREVRANGE", keys.workers, 0, 999)) do
  local known = call("HMGET", keys.worker(id), unpack(WORKER_FIELDS))
  list[i] = {id, call("ZCARD", keys.running(id))}
  for k, field in ipairs(WORKER_FIELDS) do list[i][k + 2] = known[k] or UNKNOWN[field] or "" end
  -- by the policy of the namespace: whoever looks may have other settings
  if now - tonumber(list[i][4]) > setting("worker_ttl") then list[i][3] = "dead" end
end
for bucket = math.floor(now / 10000) - 5, math.floor(now / 10000) do
  local counts = call("HGETALL", keys.recent(int(bucket)))
  for i = 1, #counts, 2 do ended[#ended + 1] = {counts[i], counts[i + 1]} end
end
return {"ok", int(now), places, list, ended, backlog.delayed(), get(act.meta, "lost") or "0", get(act.meta, "missing_records") or "0"}
