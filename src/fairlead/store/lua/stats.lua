-- Count what waits and what ended in the last minute: of all, or of one tenant.
--
-- ARGV     tenant clock
-- RETURNS  ok now places {place depth oldest? (arrival)}... held? (tasks of the tenant that workers have)
--          ended {state = count} delayed lost_events missing_records
--          estimates? (as the estimator keeps it) | uninitialised
-- FLAGS    allow-oom

local places, ended = {}, {}
local first_bucket, last_bucket = math.floor(now / 10000) - 5, math.floor(now / 10000)

local quality = get(hash(keys.learnt), "quality")
local estimates = quality and cjson.decode(quality) or nil

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
    answer = "ok", now = now, places = places, ended = ended, delayed = (presence.look(tenant, presence.DELAYED)),
    held = (presence.look(tenant, presence.HELD)), lost_events = 0, missing_records = 0,
    estimates = estimates,
  }
end

if tenant ~= "" then return numbers_of_tenant() end
for i, place in ipairs(choice.PLACES) do
  local oldest = call("ZRANGE", keys.age(place), 0, 0, "WITHSCORES")[2]
  places[i] = {place = place, depth = backlog.queued_at(place), oldest = tonumber(oldest)}
end
for bucket = first_bucket, last_bucket do
  local counts = call("HGETALL", keys.recent(int(bucket)))
  for i = 1, #counts, 2 do ended[counts[i]] = (ended[counts[i]] or 0) + counts[i + 1] end
end
return {
  answer = "ok", now = now, places = places, ended = ended, delayed = backlog.delayed(),
  lost_events = number(act.meta, "lost") or 0, missing_records = number(act.meta, "missing_records") or 0,
  estimates = estimates,
}
