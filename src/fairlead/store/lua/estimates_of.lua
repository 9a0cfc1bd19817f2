-- What is left of the waits of some tasks, by the forecast; of those that do not wait, or of which nothing is known, nothing.
--
-- ARGV     ids clock
-- RETURNS  ok estimates {id = {p50 p90 at} (ms)} | uninitialised
-- FLAGS    allow-oom

local function estimate_of(t)
  local state = get(t, "state")
  if state == "queued" then
    local place = get(t, "place")
    local _, _, ahead = ranks.ahead_of(t, place)
    return forecasts.of_waiting(t, subs.of(place, t), ahead)
  end
  return state == "delayed" and forecasts.of_delayed(t) or nil
end

local found = {}
for _, id in ipairs(cmsgpack.unpack(ids)) do
  local t = records.find(id)
  found[id] = t and forecasts.shown(estimate_of(t))
end
return {answer = "ok", estimates = found}
