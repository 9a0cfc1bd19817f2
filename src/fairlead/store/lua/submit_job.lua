-- Accept a job and queue its first stage. All its steps are checked now, not when their turn comes.
--
-- ARGV     request clock
-- RETURNS  ok id status unserved {type capabilities}... (steps that no worker runs yet) | exists id status unserved
--          | exists id status priority? (when its record is gone) | conflict | invalid field code message
--          | wait_too_long estimate most priority | deadline_unlikely estimate most
--          | queue_full setting waiting room_in? (ms) | too_many_types setting waiting room_in? | evicting policy | uninitialised

local asked = cmsgpack.unpack(request)

local function steps_of(plan)
  local steps = {}
  for _, stage in ipairs(plan) do
    for _, spec in ipairs(stage) do steps[#steps + 1] = spec end
  end
  return steps
end

local function unserved(steps)
  local list = {}
  for _, spec in ipairs(steps) do list[#list + 1] = coverage.unserved(spec.type, spec.capabilities) end
  return list
end

local function existing(job)
  local status, steps = get(job, "status"), {}
  if status == "PENDING" or status == "RUNNING" then steps = steps_of(jobs.stages_of(job)) end
  for _, spec in ipairs(steps) do types.add_declared(spec) end
  return {answer = "exists", id = job.id, status = status, unserved = unserved(steps)}
end

local known = asked.key and idempotency.find(asked.key) or NONE
local id = known.id or asked.id
local before = jobs.record(id)
local digest = known.digest or before and get(before, "digest")
if digest and digest ~= asked.digest then return {answer = "conflict"} end
if before then return existing(before) end
if digest then return {answer = "exists", id = id, status = known.state or "COMPLETED", priority = tonumber(known.priority)} end

local plan = cmsgpack.pack(asked.stages) -- as requested: what is declared of their types is added when they are queued
local steps = steps_of(asked.stages)
local problem = submits.refusal_of_all(steps) or admission.check(asked.stages[1][1])
for _, spec in ipairs(asked.stages[1]) do problem = problem or admission.check_wait(spec) end
if problem then return problem end

local fields = asked.fields
fields.status, fields.created, fields.progressed, fields.total, fields.stages = "PENDING", now, now, #steps, #asked.stages
fields.effective, fields.digest, fields.plan = fields.priority, asked.digest, plan
fields.key, fields.factor = asked.key, fair_share.factor(asked.stages[1][1].fair)
fields.made = listing.append(keys.jobs, id)
local job = new_hash(keys.job(id), fields)
job.id = id
change_count(act.meta, "jobs_open", 1)
local lacking = unserved(steps) -- with what is declared of their types
stages.queue_steps(job, stages.next_steps(job, 1, now), now)
if asked.key then idempotency.remember(asked.key, asked.digest, id) end
waking.reindex_and_commit()
return {answer = "ok", id = id, status = "PENDING", unserved = lacking}
