-- What is left of the waits of some tasks, by the forecast; of those that do not wait, or of which nothing is known, nothing.
--
-- ARGV     ids clock
-- RETURNS  ok estimates {id = {p50 p90 at} (ms)} | uninitialised
-- FLAGS    allow-oom

local found = {}
for _, id in ipairs(cmsgpack.unpack(ids)) do
  local t = records.find(id)
  found[id] = t and forecasts.shown(forecasts.of_task(t))
end
return {answer = "ok", estimates = found}
