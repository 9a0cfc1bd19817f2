-- Accept a job: its first stage is queued. All its steps are checked now, not when their turn comes.
--
-- KEYS     meta
-- ARGV     request clock
-- RETURNS  ok <id> <status> | exists <id> <status> | conflict | invalid <field> <code> <message> | queue_full <setting> <waiting>
--          <ms in which a task ends or ""> | uninitialised
-- USES     stages waking

local now = begin(clock)
if not now then return {"uninitialised"} end
local asked = cmsgpack.unpack(request)

local known = asked.key and call("GET", idempotency_key(asked.key))
local known_digest, known_id = string.match(known or "", "^(%S+) (.*)$")
local id = known_id or asked.id
local before = job_record(id)
local digest = known_digest or before and get(before, "digest")
if digest and digest ~= asked.digest then return {"conflict"} end
if digest then return {"exists", id, before and get(before, "status") or "COMPLETED"} end

local plan, steps = cmsgpack.pack(asked.stages), {} -- as asked for: what is declared of their types is added at their time
for _, stage in ipairs(asked.stages) do
  for _, spec in ipairs(stage) do steps[#steps + 1] = spec end
end
local problem = refusal_of_all(steps) or check_admission(asked.stages[1][1])
if problem then return problem end

local fields = asked.fields
fields.status, fields.created, fields.progressed, fields.total, fields.stages = "PENDING", now, now, #steps, #asked.stages
fields.effective, fields.digest, fields.plan = fields.priority, asked.digest, plan
local job = new_hash(job_key(id), fields)
queue_steps(job, next_steps(job, 1, now), now)
if asked.key then
  write({"SET", idempotency_key(asked.key), asked.digest .. " " .. id, "PX", setting("idempotency_ttl")})
end
settle_and_commit()
return {"ok", id, "PENDING"}
