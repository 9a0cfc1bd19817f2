-- Why a task waits, and what has to happen before it starts.
--
-- ARGV     id brief clock
-- RETURNS  ok state now run_at? estimate? {p50 p90 at} (ms) chosen? {worker at waited place tag why?} (of one that has started)
--          | ok state now estimate? place position ahead {priority = count} promotes_at?
--          blocked_by {limit needs used of paused is_rate free_at? by_deadline holders {id units is_task kind? {type tier size needs fair} name? tenant? since? expires? ends?}...}...
--          held_for? type_paused capable_workers only_reserve_free type serves_type? missing? (capabilities; both without a capable
--          worker) types? (that are served; like holders not if `brief` is "1") | unknown_task | uninitialised
-- FLAGS    allow-oom

local MOST_WORKERS, MOST_TYPES = 200, 1000
local t = records.find(id)
if not t then return {answer = "unknown_task"} end
local state = get(t, "state")
if state ~= "queued" then
  local estimate = state == "delayed" and forecasts.of_delayed(t) or nil
  return {
    answer = "ok", state = state, now = now, run_at = number(t, "run_at"), estimate = forecasts.shown(estimate),
    chosen = state ~= "delayed" and choice.of_run(t) or nil,
  }
end

local place = get(t, "place")
local sub, class = subs.of(place, t), subs.class(place)
local before, ahead, all_ahead = ranks.ahead_of(t, place)

-- The instant at which a limit is expected to have room, as far as that is known; whether that is the end of deadlines only; and its
-- holders, unless the answer is to be brief.
local function room_of(limit, need, room)
  if get(limit, "paused") then return nil, false end
  if get(limit, "kind") == "rate" then return rates.refilled_at(limit, need.units), false end
  local starts = forecasts.first_start(place, need.name)
  if brief == "1" then return starts, false end
  local list, ends = holding.of(limit, need.units - room)
  return starts or ends, not starts and ends ~= nil, list
end

local blocked, held_for = {}, nil
for _, need in ipairs(subs.needs(sub)) do
  local limit = limits.of(need.name)
  local hold = get(limit, "hold")
  local room = limits.room(limit, class, hold == sub)
  if room < need.units then
    local free_at, by_deadline, list = room_of(limit, need, room)
    blocked[#blocked + 1] = {
      limit = need.name, needs = need.units, used = number(limit, "used") or 0, of = limits.size_of(limit),
      paused = get(limit, "paused") ~= nil, is_rate = get(limit, "kind") == "rate", free_at = free_at,
      by_deadline = by_deadline, holders = list or {},
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
  answer = "ok", state = state, now = now, place = place, position = before + 1, ahead = ahead,
  promotes_at = after and number(t, "arrival") + after or nil, blocked_by = blocked, held_for = held_for,
  type_paused = limits.is_paused_type(sub), capable_workers = capable,
  only_reserve_free = only_reserve > 0 and only_reserve == capable,
  estimate = forecasts.shown(forecasts.of_waiting(t, sub)),
  type = subs.task_type(sub), serves_type = serves_type, missing = missing, types = types_served,
}
