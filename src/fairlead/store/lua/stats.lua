-- How much waits, runs and ended lately.
--
-- KEYS     meta
-- ARGV     clock
-- RETURNS  ok <now> { <place> <depth> <oldest arrival or ""> }... { <worker> <state> <seen> <capacity> <running> }...
--          { <state> <ended> }... <delayed> <lost events> | uninitialised
-- USES     begin

local now = begin(clock)
if not now then return {"uninitialised"} end

local places, workers, ended = {}, {}, {}
for i, place in ipairs({"0n", "0p", "1n", "1p", "2n"}) do
  local oldest = call("ZRANGE", age_key(place), 0, 0, "WITHSCORES")[2] or ""
  places[i] = {place, call("ZCARD", age_key(place)), oldest}
end
for i, id in ipairs(call("ZREVRANGE", workers_key, 0, 999)) do
  local facts = call("HMGET", worker_key(id), "state", "seen", "capacity")
  workers[i] = {id, facts[1] or "gone", facts[2] or "0", facts[3] or "0", call("ZCARD", running_key(id))}
end
for bucket = math.floor(now / 10000) - 5, math.floor(now / 10000) do
  local counts = call("HGETALL", recent_key(int(bucket)))
  for i = 1, #counts, 2 do ended[#ended + 1] = {counts[i], counts[i + 1]} end
end
return {"ok", int(now), places, workers, ended, call("ZCARD", delayed_key), get(meta, "lost") or "0"}
