-- What has happened since the namespace exists, counted by the acts that do it (docs/monitoring.md).
--
--   submitted:<priority>               tasks that were accepted
--   wait:<priority>:<bucket>           starts, by how long the task had waited; wait_ms:<priority>: the sum
--   run:<priority>:<state>:<bucket>    tasks that ended, by how long their last run took; run_ms:<priority>:<state>: the sum
--   ended:<priority>:<state>           tasks that ended without a run, or whose run took no one knows how long
--   retries:<priority>:<reason>        runs after which the task was queued again
--   failed:<reason>                    tasks that failed for good
--   promoted:<from>:<to>               promotions, by effective priority
--
-- A priority is the base priority, 0 to 2. A bucket is the number of its bound in BOUNDS, from 1.

-- ms; fairlead.model.metrics has the same.
local BOUNDS = {
  10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000, 1200000, 1800000, 3600000, 7200000,
  21600000, 86400000,
}
local MOST_REASONS = 100 -- handlers and workers choose the codes of their errors

local ENDED = {completed = true, failed = true, dead_letter = true, cancelled = true}

local function count(field)
  act.counted[field] = (act.counted[field] or 0) + 1
end

local function bucket_of(ms)
  for i = 1, #BOUNDS do
    if ms <= BOUNDS[i] then return i end
  end
  return #BOUNDS + 1
end

local function observe(name, of, ms)
  count(name .. ":" .. of .. ":" .. bucket_of(ms))
  local sum = name .. "_ms:" .. of
  act.counted[sum] = (act.counted[sum] or 0) + ms
end

local function count_reason(name, code)
  local counts, field = hash(keys.metrics), name .. ":" .. (code or "other")
  if not act.counted[field] and not get(counts, field) then
    local known = number(counts, "reasons") or 0
    if known >= MOST_REASONS then return count(name .. ":other") end
    put(counts, "reasons", known + 1)
  end
  count(field)
end

local function count_end(t, verb, from, to, now, code)
  local of = t.known.facts.priority .. ":" .. to
  local ran = t.ran or verb == "cancel" and from == "executing" and now - t.known.started
  if ran then observe("run", of, ran) else count("ended:" .. of) end
  if to == "failed" or to == "dead_letter" then count_reason("failed", code) end
end

-- Counts a transition; `detail` is that of its event.
function metrics.follow(t, verb, from, to, now, detail)
  local priority = t.known.facts.priority
  if verb == "submit" then
    count("submitted:" .. priority)
  elseif verb == "claim" then
    observe("wait", priority, detail.waited)
  elseif ENDED[to] then
    if from ~= to then count_end(t, verb, from, to, now, detail and detail.code) end
  elseif from == "executing" and (verb == "fail" or verb == "expire") then
    count_reason("retries:" .. priority, detail.code)
  elseif verb == "promote" and from == "queued" then
    count("promoted:" .. string.sub(detail.from, 1, 1) .. ":" .. string.sub(detail.to, 1, 1))
  end
end

function metrics.write()
  for field, by in pairs(act.counted) do write({"HINCRBY", keys.metrics, field, by}) end
end
