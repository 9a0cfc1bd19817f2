-- Accepting new tasks: everything is checked first, then the record is made and queued.

-- Defines a slots limit with a submit; an existing limit stays as it is.
local function define_group(spec)
  if spec.group and not limits.of(spec.group) then
    local limit = act.limit_views[spec.group]
    put(limit, "kind", "slots")
    put(limit, "limit", spec.group_limit)
    put(limit, "group", 1) -- it ends by itself
    act.left_limits[spec.group] = limit
    add(ordered(keys.limits), spec.group, 0)
  end
end

-- `groups`: limits that tasks to be accepted before this one will define.
local function check_limits(spec, groups)
  for _, need in ipairs(limits.needs(spec.limits)) do
    local limit = limits.of(need.name)
    local most
    if limit then
      most = limits.size_of(limit)
    elseif groups and groups[need.name] then
      most = groups[need.name]
    elseif need.name == spec.group then
      most = spec.group_limit
    else
      local field = "limits." .. tenants.plain_name(need.name)
      return types.invalid(field, "unknown_limit", "there is no such limit: define it first")
    end
    if most > 0 and need.units > most then
      return types.invalid("limits." .. tenants.plain_name(need.name), "too_many_units", limits.why_never(limit, most, need.units))
    end
  end
end

-- The limits of a task that have ended since it was accepted, as the spec of a new task. A group among them that the task itself defined
-- can be defined again.
local function ended_limits(t)
  local facts, ended, spec = t.known.facts, {}, {}
  spec.group_limit = tonumber(facts.concurrency_limit or t.is_gathered and get(t, "concurrency_limit"))
  local group = spec.group_limit and (facts.concurrency_group or t.is_gathered and get(t, "concurrency_group") or facts.type)
  for _, need in ipairs(limits.needs(facts.limits or "")) do
    if not limits.of(need.name) and not tiers.is_limit(need.name) then
      ended[need.name] = need.units
      if tenants.plain_name(need.name) == group then spec.group = need.name end
    end
  end
  spec.limits = types.write_needs(ended)
  return spec
end

-- Why a task that has ended cannot be queued again, or nil. Nothing is changed.
function submits.refusal_of_return(t)
  return check_limits(ended_limits(t))
end

function submits.define_group_again(t)
  define_group(ended_limits(t))
end

-- The answer about a task that is there already.
local function existing(t)
  local state, facts = get(t, "state"), t.known.facts
  local waits = state == "queued" or state == "delayed"
  local unserved = waits and coverage.unserved(facts.type, facts.capabilities or "") or nil
  return {answer = "exists", id = t.id, state = state, unserved = unserved}
end

-- The answer given before to the same id or idempotency key; nil for a new task.
local function given_before(spec)
  local t = get(hash(keys.task(spec.id)), "state") and records.find(spec.id)
  if t then
    local same = t.known.facts.type == spec.type and get(t, "parameters") == spec.parameters
    -- the same answer for another tenant, which must not learn of the task
    if not same or t.known.facts.tenant ~= (spec.facts or NONE).tenant then return {answer = "conflict"} end
    return existing(t)
  end
  local known = spec.key and idempotency.find(spec.key)
  if not known then return nil end
  if known.digest ~= spec.digest then return {answer = "conflict"} end
  t = get(hash(keys.task(known.id)), "state") and records.find(known.id)
  if t then return existing(t) end
  return {
    answer = "exists", id = known.id, state = known.state or "completed",
    priority = tonumber(known.priority), effective = tonumber(known.effective),
  }
end

-- The first refusal if these are submitted in this order, or nil. Nothing is changed.
function submits.refusal_of_all(specs)
  local groups, digests = {}, {}
  for _, spec in ipairs(specs) do
    tenants.name_limits(spec)
    local before = given_before(spec)
    if before and before.answer == "conflict" then return before end
    if spec.key and (digests[spec.key] or spec.digest) ~= spec.digest then return {answer = "conflict"} end
    local problem = not before and (types.add_declared(spec) or tiers.assign(spec) or check_limits(spec, groups))
    if problem then return problem end
    if spec.key then digests[spec.key] = spec.digest end
    if spec.group and not groups[spec.group] then groups[spec.group] = spec.group_limit end
  end
end

-- The names of the limits that have no room for it now, if there are any.
local function without_room(spec)
  if spec.limits == "" then return nil end
  local lacking
  for _, need in ipairs(limits.needs(spec.limits)) do
    if limits.room(limits.of(need.name), spec.priority, false) < need.units then
      lacking = lacking or {}
      lacking[#lacking + 1] = need.name
    end
  end
  return lacking
end

-- Queues or delays a task. Returns the answer. A step that `follows` a result is accepted even when the queue is full: its job was
-- accepted before.
function submits.submit(spec, now, follows)
  local before = given_before(spec)
  if before then return before end
  tenants.name_limits(spec)
  local problem = types.add_declared(spec) or tiers.assign(spec) or check_limits(spec)
  problem = problem or not follows and admission.check(spec)
  if problem then return problem end
  define_group(spec)
  if spec.interactive then return sessions.admit(spec, now) end
  local t = records.make(spec, now)
  local run_at = spec.run_at or spec.delay and now + spec.delay or now
  local eligible = math.max(now, run_at)
  local place, state = int(spec.priority) .. "n", eligible > now and "delayed" or "queued"
  local position, blocked_by, taker, estimate
  if state == "delayed" then
    if spec.max_wait then put(t, "wait_until", eligible + spec.max_wait) end -- its wait begins when it is queued
    backlog.delay_until(t, eligible)
    estimate = forecasts.of_delayed(t)
  else
    if spec.max_wait then leases.wait_at_most_until(t, eligible + spec.max_wait) end
    put_all(t, {"state", state, "arrival", spec.arrival or now})
    position, blocked_by = backlog.next_position(spec.priority), without_room(spec)
    taker = act.find_taker and act.find_taker(t, place)
    if not taker then queues.enter(t, place) end
    estimate = forecasts.of_new(t, place, taker, position, blocked_by)
  end
  local facts = t.known.facts
  facts.estimate = estimate
  events.add(t, "submit", nil, state, now, {
    type = spec.type, priority = spec.priority, fair = spec.fair, needs = facts.limits, capabilities = facts.capabilities,
    elastic = facts.elastic, size = facts.size_hint, tier = facts.duration,
  })
  if spec.key then idempotency.remember(spec.key, spec.digest, spec.id) end
  if taker then act.hand_straight(taker, t, place) end
  return {
    answer = "ok", id = spec.id, state = state, position = position, blocked_by = blocked_by,
    unserved = not taker and coverage.unserved(spec.type, spec.capabilities) or nil,
    estimate = forecasts.shown(estimate),
  }
end
