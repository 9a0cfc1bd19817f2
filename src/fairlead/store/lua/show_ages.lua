-- Return how long the tasks have waited that are queued with each effective priority: so long that this share of them waits no longer.
--
-- ARGV     shares clock
-- RETURNS  ok ages {ms...}... | uninitialised
-- FLAGS    allow-oom

local PLACES = {{"0n", "0p"}, {"1n", "1p"}, {"2n"}}

local function arrival_at(place, rank)
  return tonumber(call("ZRANGE", keys.age(place), rank, rank, "WITHSCORES")[2])
end

-- The arrival with this rank, from 0, of both sets together: how many of the first set come before it is searched for.
local function merged(places, sizes, rank)
  if sizes[1] == 0 or sizes[2] == 0 then return arrival_at(places[sizes[1] == 0 and 2 or 1], rank) end
  local low, high = math.max(0, rank + 1 - sizes[2]), math.min(rank + 1, sizes[1])
  while low < high do
    local taken = math.floor((low + high) / 2)
    if arrival_at(places[1], taken) < arrival_at(places[2], rank - taken) then low = taken + 1 else high = taken end
  end
  local last = low > 0 and arrival_at(places[1], low - 1) or 0
  return low > rank and last or math.max(last, arrival_at(places[2], rank - low))
end

local ages = {}
for class, places in ipairs(PLACES) do
  local sizes, row = {0, 0}, {}
  for i, place in ipairs(places) do sizes[i] = call("ZCARD", keys.age(place)) end
  local count = sizes[1] + sizes[2]
  for i, share in ipairs(cmsgpack.unpack(shares)) do
    -- the oldest come first: of the others this share waits no longer
    row[i] = count > 0 and math.max(0, now - merged(places, sizes, count - math.ceil(share * count))) or 0
  end
  ages[class] = row
end
return {answer = "ok", ages = ages}
