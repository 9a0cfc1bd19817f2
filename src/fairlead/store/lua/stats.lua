-- How much waits, runs and ended lately.
--
-- KEYS     meta
-- ARGV     clock
-- RETURNS  ok <now> { <place> <depth> <oldest arrival or ""> }... { <worker> <running> <state> <seen> <capacity> <reserve>
--          <types> <capabilities> <name> <version> }... { <state> <ended> }... <delayed> <lost events> | uninitialised
-- USES     begin

local now = begin(clock)
if not now then return {"uninitialised"} end

local WORKER_FIELDS = {"state", "seen", "capacity", "reserve", "types", "capabilities", "name", "version"}
local UNKNOWN = {state = "gone", seen = "0", capacity = "0", reserve = "0", types = "*"} -- its record has run out

local places, workers, ended = {}, {}, {}
for i, place in ipairs({"0n", "0p", "1n", "1p", "2n"}) do
  local oldest = call("ZRANGE", age_key(place), 0, 0, "WITHSCORES")[2] or ""
  places[i] = {place, call("ZCARD", age_key(place)), oldest}
end
for i, id in ipairs(call("ZREVRANGE", workers_key, 0, 999)) do
  local known = call("HMGET", worker_key(id), unpack(WORKER_FIELDS))
  workers[i] = {id, call("ZCARD", running_key(id))}
  for k, field in ipairs(WORKER_FIELDS) do workers[i][k + 2] = known[k] or UNKNOWN[field] or "" end
  -- by the policy of the namespace: whoever looks may have other settings
  if now - tonumber(workers[i][4]) > setting("worker_ttl") then workers[i][3] = "dead" end
end
for bucket = math.floor(now / 10000) - 5, math.floor(now / 10000) do
  local counts = call("HGETALL", recent_key(int(bucket)))
  for i = 1, #counts, 2 do ended[#ended + 1] = {counts[i], counts[i + 1]} end
end
return {"ok", int(now), places, workers, ended, call("ZCARD", delayed_key), get(meta, "lost") or "0"}
