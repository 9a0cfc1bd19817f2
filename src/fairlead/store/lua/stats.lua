-- How much waits, runs and ended lately: of all, or of one tenant, which learns nothing of the workers.
--
-- ARGV     tenant clock
-- RETURNS  ok now places {place depth oldest? (arrival)}... held? (tasks of the tenant that workers have)
--          workers {id running state seen capacity reserve types? capabilities? name? version?}...
--          ended {state = count} delayed lost_events missing_records | uninitialised
-- FLAGS    allow-oom

local int = unit.int
local number = hashes.number
local setting, begin = acts.setting, acts.begin

local now = begin(clock)
if not now then return {answer = "uninitialised"} end

local WORKER_FIELDS = {"state", "seen", "capacity", "reserve", "types", "capabilities", "name", "version"}

local function worker_row(id)
  local row = {id = id, running = call("ZCARD", keys.running(id))}
  local known = call("HMGET", keys.worker(id), unpack(WORKER_FIELDS))
  for i, field in ipairs(WORKER_FIELDS) do row[field] = known[i] or nil end
  for _, field in ipairs({"seen", "capacity", "reserve"}) do row[field] = tonumber(row[field]) or 0 end -- 0: its record has run out
  -- by the policy of the namespace: whoever looks may have other settings
  if now - row.seen > setting("worker_ttl") then row.state = "dead" end
  return row
end

local places, list, ended = {}, {}, {}
local first_bucket, last_bucket = math.floor(now / 10000) - 5, math.floor(now / 10000)

local function numbers_of_tenant()
  for i, place in ipairs(choice.PLACES) do
    local depth, oldest = presence.look(tenant, place)
    places[i] = {place = place, depth = depth, oldest = oldest}
  end
  local states = {"completed", "failed", "dead_letter", "cancelled"}
  for bucket = first_bucket, last_bucket do
    for _, state in ipairs(states) do
      local count = call("HGET", keys.recentof(int(bucket)), state .. ":" .. tenant)
      if count then ended[state] = (ended[state] or 0) + count end
    end
  end
  return {
    answer = "ok", now = now, places = places, workers = list, ended = ended, delayed = (presence.look(tenant, presence.DELAYED)),
    held = (presence.look(tenant, presence.HELD)), lost_events = 0, missing_records = 0,
  }
end

if tenant ~= "" then return numbers_of_tenant() end
for i, place in ipairs(choice.PLACES) do
  local oldest = call("ZRANGE", keys.age(place), 0, 0, "WITHSCORES")[2]
  places[i] = {place = place, depth = backlog.standing_at(place), oldest = tonumber(oldest)}
end
for i, id in ipairs(call("ZREVRANGE", keys.workers, 0, 999)) do
  list[i] = worker_row(id)
end
for bucket = first_bucket, last_bucket do
  local counts = call("HGETALL", keys.recent(int(bucket)))
  for i = 1, #counts, 2 do ended[counts[i]] = (ended[counts[i]] or 0) + counts[i + 1] end
end
return {
  answer = "ok", now = now, places = places, workers = list, ended = ended, delayed = backlog.delayed(),
  lost_events = number(act.meta, "lost") or 0, missing_records = number(act.meta, "missing_records") or 0,
}
