-- Admission: so many tasks may wait, in all and of each owner; one more is refused. What was accepted once never is.

-- Queued or delayed, with those of this act.
local function waiting_in_all()
  return backlog.delayed() + backlog.queued_in_all()
end

-- The ms in which one task ends, by those of the last minute: so soon there may be a place. nil when none ended.
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

-- A tenant may have tasks of so many kinds waiting: each kind, a type with its capabilities, is a line of its own.
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
