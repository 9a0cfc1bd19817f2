-- What has happened since the namespace exists, counted by the acts that do it (docs/monitoring.md). Fields of the hash `metrics`:
--
--   submitted:<priority>               tasks that were accepted
--   wait:<bucket>:<priority>           starts, by how long the task had waited; wait_ms:<priority>: the sum
--   run:<bucket>:<priority>:<state>    tasks that ended, by how long their last run took; run_ms:<priority>:<state>: the sum
--   ended:<priority>:<state>           tasks that ended without a run, or whose last run took an unknown time
--   retries:<priority>:<reason>        runs after which the task was queued again
--   failed:<reason>                    tasks that failed for good
--   promoted:<from>:<to>               promotions, by effective priority
--   workers_lost                       workers that fell silent
--
-- and of the hash `acquisitions`:
--
--   acquired:<bucket>:<limit>          units taken by a task or a lease, by how long it had waited; acquired_ms:<limit>: the sum
--   rejected:<limit>                   acquires that got nothing
--
-- A priority is the base priority, 0 to 2. A bucket is the number of its bound in BOUNDS, from 1. There may be any number of limits: the
-- first ones to be used have counts of their own, the others are counted together as `other`.

-- ms; fairlead.model.metrics has the same.
local BOUNDS = {
  10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000, 1200000, 1800000, 3600000, 7200000,
  21600000, 86400000,
}
local MOST_LIMITS = 200
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

local function histogram(name, of)
  local fields = {sum = name .. "_ms:" .. of}
  for bucket = 1, #BOUNDS + 1 do fields[bucket] = name .. ":" .. bucket .. ":" .. of end
  return fields
end

local function make_fields()
  local fields = {submitted = {}, wait = {}, run = {}}
  for priority = 0, 2 do
    fields.submitted[priority], fields.wait[priority], fields.run[priority] = "submitted:" .. priority, histogram("wait", priority), {}
    for state in pairs(ENDED) do fields.run[priority][state] = histogram("run", priority .. ":" .. state) end
  end
  return fields
end

-- The names of fields that many tasks count in are made once: to make them took longer than to count.
local function fields_of(name, priority)
  return memo.of("metrics", "", make_fields)[name][tonumber(priority)]
end

local function observe(fields, ms)
  count(fields[bucket_of(ms)])
  act.counted[fields.sum] = (act.counted[fields.sum] or 0) + ms
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
  local priority = t.known.facts.priority
  local ran = t.ran or verb == "cancel" and from == "executing" and now - t.known.started
  if ran then observe(fields_of("run", priority)[to], ran) else count("ended:" .. priority .. ":" .. to) end
  if to == "failed" or to == "dead_letter" then count_reason("failed", code) end
end

-- Counts a transition; `detail` is that of its event.
function metrics.follow(t, verb, from, to, now, detail)
  local priority = t.known.facts.priority
  if verb == "submit" then
    count(fields_of("submitted", priority))
  elseif verb == "claim" then
    observe(fields_of("wait", priority), detail.waited)
  elseif ENDED[to] then
    if from ~= to then count_end(t, verb, from, to, now, detail and detail.code) end
  elseif from == "executing" and (verb == "fail" or verb == "expire") then
    count_reason("retries:" .. priority, detail.code)
  elseif verb == "promote" and from == "queued" then
    count("promoted:" .. string.sub(detail.from, 1, 1) .. ":" .. string.sub(detail.to, 1, 1))
  end
end

-- The limit that has ended and may give its counts up for another one; nil when there is none.
local function ended_limit(set)
  for _, name in ipairs(call("ZRANGEBYSCORE", keys.counted, 1, "+inf", "LIMIT", 0, 16)) do
    if not set.removed[name] and not set.added[name] then return name end
  end
end

local function drop_counts(name)
  local gone = {"HDEL", keys.acquisitions, "acquired_ms:" .. name, "rejected:" .. name}
  for bucket = 1, #BOUNDS + 1 do gone[#gone + 1] = "acquired:" .. bucket .. ":" .. name end
  write(gone)
end

-- Has this limit, which is used for the first time since it was defined, counts of its own?
local function gets_counts(name)
  local set = ordered(keys.counted)
  if not set.added[name] and not call("ZSCORE", set.key, name) then
    local count = call("ZCARD", set.key)
    for _ in pairs(set.added) do count = count + 1 end
    if count >= MOST_LIMITS then
      local ended = ended_limit(set)
      if not ended then return false end
      remove(set, ended)
      drop_counts(ended)
    end
  end
  add(set, name, 0)
  return true
end

local function label_of(limit)
  local counted = get(limit, "counted")
  if not counted then
    counted = gets_counts(limit.name) and "1" or "0"
    put(limit, "counted", counted)
  end
  return counted == "1" and limit.name or "other"
end

local function count_of_limit(field, by)
  act.acquisitions[field] = (act.acquisitions[field] or 0) + by
end

-- What these needs name was taken after a wait of this many ms. Of tiers, which are nested, only the longest counts.
function metrics.acquired(needs, waited)
  local all, bucket, longest = tiers.all(), bucket_of(waited), nil
  local function count_in(name)
    local label = label_of(limits.of(name))
    count_of_limit("acquired:" .. bucket .. ":" .. label, 1)
    count_of_limit("acquired_ms:" .. label, waited)
  end
  for _, need in ipairs(needs) do
    local tier = all[need.tier]
    if not tier then
      count_in(need.name)
    elseif not longest or tier.index > longest.index then
      longest = tier
    end
  end
  if longest then count_in(longest.limit) end
end

function metrics.rejected(limit)
  count_of_limit("rejected:" .. label_of(limit), 1)
end

-- Keeps the counts of a limit that ends: it may be defined again.
function metrics.limit_ended(limit)
  if get(limit, "counted") == "1" then add(ordered(keys.counted), limit.name, act.instant) end
end

function metrics.worker_lost()
  count("workers_lost")
end

local function write_counts(key, counts)
  for field, by in pairs(counts) do write({"HINCRBY", key, field, text_of(by)}) end
end

function metrics.write()
  write_counts(keys.metrics, act.counted)
  write_counts(keys.acquisitions, act.acquisitions)
end
