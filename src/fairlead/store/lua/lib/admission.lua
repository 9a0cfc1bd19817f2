-- Admission: how many tasks may wait, in all and of each owner; more are refused. A task that was accepted is never refused later.

-- Queued or delayed, including those of this act.
local function waiting_in_all()
  return backlog.delayed() + backlog.queued_in_all()
end

-- The mean ms between two ends of tasks in the last minute, after which there may be room. nil when none ended.
local function pace()
  local ended = 0
  for bucket = math.floor(act.instant / 10000) - 5, math.floor(act.instant / 10000) do
    for _, count in ipairs(call("HVALS", keys.recent(int(bucket)))) do ended = ended + count end
  end
  return ended > 0 and math.ceil(60000 / ended) or nil
end

local function full(setting_name, count)
  if count < (setting(setting_name) or math.huge) then return nil end
  return {answer = "queue_full", setting = setting_name, waiting = count, pace = pace()}
end

-- How many kinds of tasks of a tenant may wait: each kind, a type with its capabilities, has its own queue.
local function check_kinds(spec, tenant)
  local kinds, route = backlog.kinds_of(tenant), subs.route_of(spec.type, spec.capabilities)
  if get(kinds, route) then return nil end
  local most, new = setting("max_task_types"), act.new_kinds[tenant] or 0
  local count = most and call("HLEN", kinds.key) + new
  if most and count >= most then return {answer = "too_many_types", setting = "max_task_types", waiting = count, pace = pace()} end
  act.new_kinds[tenant] = new + 1
end

-- A refusal, or nil.
function admission.check(spec)
  local facts = spec.facts or NONE
  local owner, evicting = backlog.owner_of(facts.tenant, facts.user_id), get(act.meta, "evicting")
  if evicting then return {answer = "evicting", policy = evicting} end
  return owner and full("max_queued_per_user", number(hash(keys.waiting), owner) or 0)
    or full("max_queued", waiting_in_all())
    or check_kinds(spec, facts.tenant or "")
end
