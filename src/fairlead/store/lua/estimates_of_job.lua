-- What is left of the waits of those steps of a job that have not ended, by the forecast. Of a step that is not queued yet: the wait that
-- a task at its place in the order would have now.
--
-- ARGV     id clock
-- RETURNS  ok now steps {stage step kind {type tier size needs fair} needs started? estimate? {p50 p90 at} (ms)}... | unknown_job | uninitialised
-- FLAGS    allow-oom

local ENDED = {completed = true, failed = true, cancelled = true, dead_letter = true}

local job = jobs.record(id)
if not job then return {answer = "unknown_job"} end

local function of_pending(spec)
  tenants.name_limits(spec)
  if types.add_declared(spec) or tiers.assign(spec) then return nil end
  return forecasts.of_spec(spec, jobs.next_position(job, tonumber(spec.facts.step), int(spec.priority) .. "n", spec.fair))
end

local function kind_of(spec, t)
  if t then return records.run_kind(t.known.facts, records.tier_of(t)) end
  local facts = {type = spec.type, size_hint = spec.facts.size_hint, limits = spec.limits, fair = spec.fair}
  return records.run_kind(facts, spec.facts.duration)
end

local function row(stage, spec)
  local t = records.find(spec.id)
  local state = t and get(t, "state")
  if ENDED[state] or get(job, "result:" .. spec.facts.step) then return nil end
  local runs, estimate = state == "executing", nil
  if t then estimate = forecasts.of_task(t) else estimate = of_pending(spec) end
  return {
    stage = stage, step = tonumber(spec.facts.step), kind = kind_of(spec, t), needs = (t and t.known.facts or spec).limits or "",
    started = runs and number(t, "started") or nil, estimate = forecasts.shown(estimate),
  }
end

local steps = {}
for stage, specs in ipairs(jobs.stages_of(job)) do
  for _, spec in ipairs(specs) do steps[#steps + 1] = row(stage, spec) end
end
return {answer = "ok", now = now, steps = steps}
