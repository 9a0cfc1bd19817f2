-- Admission: how many tasks may wait, in all and of each owner, and how long; more are refused. A task that was accepted is never
-- refused later.

local MOST_WAIT = {[0] = "max_wait_high", "max_wait_medium", "max_wait_low"}

-- Queued or delayed, including those of this act.
local function waiting_in_all()
  return backlog.delayed() + backlog.queued_in_all()
end

-- The mean ms between two ends of tasks in the last minute; nil when none ended.
local function pace()
  local ended = 0
  for bucket = math.floor(act.instant / 10000) - 5, math.floor(act.instant / 10000) do
    for _, count in ipairs(call("HVALS", keys.recent(int(bucket)))) do ended = ended + count end
  end
  return ended > 0 and math.ceil(60000 / ended) or nil
end

-- The ms until one of those that wait is expected to start, and there is room for one more; nil when nothing is known.
local function room_in()
  local soonest = pace()
  for _, place in ipairs(choice.PLACES) do
    local member = first(ordered(keys.order(place)))
    local t = member and records.find(names.about(member))
    local estimate = t and forecasts.of_waiting(t, subs.of(place, t))
    if estimate and (not soonest or estimate[1] < soonest) then soonest = estimate[1] end
  end
  return soonest
end

local function full(setting_name, count)
  if count < (setting(setting_name) or math.huge) then return nil end
  return {answer = "queue_full", setting = setting_name, waiting = count, room_in = room_in()}
end

-- How many kinds of tasks of a tenant may wait: each kind, a type with its capabilities, has its own queue.
local function check_kinds(spec, tenant)
  local kinds, route = backlog.kinds_of(tenant), subs.route_of(spec.type, spec.capabilities)
  if get(kinds, route) then return nil end
  local most, new = setting("max_task_types"), act.new_kinds[tenant] or 0
  local count = most and call("HLEN", kinds.key) + new
  if most and count >= most then
    return {answer = "too_many_types", setting = "max_task_types", waiting = count, room_in = room_in()}
  end
  act.new_kinds[tenant] = new + 1
end

-- The refusal of what would start too late, by p50; nil also when nothing is known, or when it is to start later anyway.
function admission.check_wait(spec)
  local most, within = setting(MOST_WAIT[spec.priority]) or 0, spec.start_within or math.huge
  local is_bounded = most > 0 or spec.start_within
  if not is_bounded or spec.interactive or spec.delay or (spec.run_at or 0) > act.instant then return nil end
  local estimate = forecasts.of_spec(spec, fair_share.next_tag(int(spec.priority) .. "n", spec.fair), math.huge)
  if not estimate then return nil end
  local shown = forecasts.shown(estimate)
  if estimate[1] > within then return {answer = "deadline_unlikely", estimate = shown, most = within} end
  if most > 0 and estimate[1] > most then
    return {answer = "wait_too_long", estimate = shown, most = most, priority = spec.priority}
  end
end

-- A refusal, or nil.
function admission.check(spec)
  local facts = spec.facts or NONE
  local owner, evicting = backlog.owner_of(facts.tenant, facts.user_id), get(act.meta, "evicting")
  if evicting then return {answer = "evicting", policy = evicting} end
  return owner and full("max_queued_per_user", number(hash(keys.waiting), owner) or 0)
    or full("max_queued", waiting_in_all())
    or admission.check_wait(spec)
    or check_kinds(spec, facts.tenant or "")
end
