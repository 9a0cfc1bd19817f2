-- Return the waiting tasks that are promoted next, up to `count`: of all, or of one tenant.
--
-- ARGV     tenant count clock
-- RETURNS  ok tasks {id type from to at arrival user? tenant?}... | uninitialised
-- FLAGS    allow-oom

local NEXT = {["2n"] = 1, ["1n"] = 0, ["1p"] = 0} -- the effective priority after the promotion

local found = {}
for place, priority in pairs(NEXT) do
  local after = queues.threshold(place)
  local oldest = tenant == "" and keys.age(place) or keys.presence(place .. ":" .. tenant)
  local rows = after and call("ZRANGE", oldest, 0, count - 1, "WITHSCORES") or NONE
  for i = 1, #rows, 2 do
    local id = tenant == "" and names.about(rows[i]) or rows[i]
    local t, arrival = records.find(id), tonumber(rows[i + 1])
    if t then
      local facts = t.known.facts
      found[#found + 1] = {
        id = id, type = facts.type, from = subs.class(place), to = priority, at = arrival + after, arrival = arrival,
        user = facts.user_id, tenant = facts.tenant,
      }
    end
  end
end
table.sort(found, function(a, b) return a.at < b.at or a.at == b.at and a.id < b.id end)
local first_ones = {}
for i = 1, math.min(#found, tonumber(count)) do first_ones[i] = found[i] end
return {answer = "ok", tasks = first_ones}
