-- Why a task waits, and what has to happen before it starts.
--
-- ARGV     id brief clock
-- RETURNS  ok state run_at? estimate? {p50 p90 at} (ms) | ok state estimate? place position ahead {priority = count} promotes_at?
--          blocked_by {limit needs used of paused free_at?}... held_for? type_paused capable_workers only_reserve_free type
--          serves_type? missing? (capabilities; both without a capable worker) types? (that are served, unless `brief` is "1")
--          | unknown_task | uninitialised
-- FLAGS    allow-oom

local MOST_WORKERS, MOST_TYPES = 200, 1000
local t = records.find(id)
if not t then return {answer = "unknown_task"} end
if get(t, "state") ~= "queued" then
  local estimate = get(t, "state") == "delayed" and forecasts.of_delayed(t) or nil
  return {answer = "ok", state = get(t, "state"), run_at = number(t, "run_at"), estimate = forecasts.shown(estimate)}
end

local place, tag = get(t, "place"), number(t, "tag")
local sub = subs.of(place, t)
local class, own_member = subs.class(place), names.member(number(t, "seq"), id)

-- Those before it in its own place; all of the other place when it is their turn; all of better priorities.
local position = call("ZRANK", keys.order(place), own_member)
local other = string.sub(place, 1, 1) .. (string.sub(place, 2) == "n" and "p" or "n")
if setting("budget") == 0 then
  position = position + call("ZCOUNT", keys.order(other), "-inf", "(" .. int(tag))
  local level = call("ZRANGEBYSCORE", keys.order(other), tag, tag, "LIMIT", 0, 1000)
  for _, member in ipairs(level) do position = position + (member < own_member and 1 or 0) end
elseif choice.turn_of(class, string.sub(place, 2) == "p") == 1 then
  position = position + backlog.queued_at(other)
end
local ahead, all_ahead = {}, position
for better = 0, class - 1 do
  local count = backlog.queued_in(better)
  if count > 0 then ahead[int(better)] = count end
  all_ahead = all_ahead + count
end

local blocked, held_for = {}, nil
for _, need in ipairs(subs.needs(sub)) do
  local limit = limits.of(need.name)
  local hold = get(limit, "hold")
  if limits.room(limit, class, hold == sub) < need.units then
    local is_rate = get(limit, "kind") == "rate"
    blocked[#blocked + 1] = {
      limit = need.name, needs = need.units, used = number(limit, "used") or 0, of = limits.size_of(limit),
      paused = get(limit, "paused") ~= nil, free_at = is_rate and rates.refilled_at(limit, need.units) or nil,
    }
    if hold and hold ~= sub and limits.room(limit, class, true) >= need.units then held_for = holds.owner(hold) end
  end
end

-- Of the workers seen last: which serve it, and is only their reserve free?
local function has_only_reserve(worker, record)
  local used, open_used = call("ZCARD", keys.running(worker)), call("ZCOUNT", keys.running(worker), 1, 1)
  local open = number(record, "capacity") - number(record, "reserve") - open_used
  return place ~= "0n" and open <= 0 and used < number(record, "capacity")
end

local serving, capable, only_reserve = audiences.registry().has[audiences.of(subs.route(sub))], 0, 0
local seen_last = call("ZREVRANGEBYSCORE", keys.workers, "+inf", int(now - setting("worker_ttl")), "LIMIT", 0, MOST_WORKERS)
for _, worker in ipairs(seen_last) do
  local record = workers.record(worker)
  if record and serving[get(record, "profile") or ""] then
    capable = capable + 1
    if has_only_reserve(worker, record) then only_reserve = only_reserve + 1 end
  end
end
if #seen_last == MOST_WORKERS then capable = math.max(capable, audiences.workers_for(subs.route(sub))) end

local serves_type, missing, types_served
if capable == 0 then
  serves_type, missing = coverage.lacking(subs.route(sub))
  if not serves_type and brief ~= "1" then types_served = coverage.served_types(MOST_TYPES) end
end

local after = queues.threshold(place)
return {
  answer = "ok", state = "queued", place = place, position = position + 1, ahead = ahead,
  promotes_at = after and number(t, "arrival") + after or nil, blocked_by = blocked, held_for = held_for,
  type_paused = limits.is_paused_type(sub), capable_workers = capable,
  only_reserve_free = only_reserve > 0 and only_reserve == capable,
  estimate = forecasts.shown(forecasts.of_waiting(t, sub, all_ahead)),
  type = subs.task_type(sub), serves_type = serves_type, missing = missing, types = types_served,
}
