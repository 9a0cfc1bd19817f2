-- Why a task waits, and what has to happen before it starts.
--
-- ARGV     id clock
-- RETURNS  ok <now> <json> | unknown_task | uninitialised

local int = unit.int
local get, number = hashes.get, hashes.number
local setting, begin = acts.setting, acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
local t = leases.task(id)
if not t then return {"unknown_task"} end
if get(t, "state") ~= "queued" then
  return {"ok", int(now), cjson.encode({state = get(t, "state"), run_at = number(t, "run_at")})}
end

local place, tag = get(t, "place"), number(t, "tag")
local sub, lane = queues.sub_name(place, t), queues.lane_name(place, t)
local own_ticket = lots.ticket(number(t, "seq"), id)

-- Those of its own line that stand before it, of better priorities, and of the other kind when it is their turn: counted
-- per sub-queue, never per task.
local position, ahead, beside = 0, {}, 0
local one_line = setting("budget") == 0
local waits_its_turn = choice.turn_of({class = limits.class_of(place), promoted = string.sub(place, 2) == "p"}) == 1
for _, other in ipairs(call("HKEYS", keys.home)) do
  local same_class = limits.class_of(other) == limits.class_of(place)
  if limits.place_of(other) == place or one_line and same_class then
    position = position + call("ZCOUNT", keys.queue(other), "-inf", "(" .. int(tag))
    local level = call("ZRANGEBYSCORE", keys.queue(other), tag, tag, "LIMIT", 0, 1000)
    for _, beside in ipairs(level) do position = position + (beside < own_ticket and 1 or 0) end
  elseif same_class and waits_its_turn then
    beside = beside + call("ZCARD", keys.queue(other))
  elseif limits.class_of(other) < limits.class_of(place) then
    local class = string.sub(other, 1, 1)
    ahead[class] = (ahead[class] or 0) + call("ZCARD", keys.queue(other))
  end
end

local blocked, held_for = {}, nil
for _, need in ipairs(limits.needs_of(sub)) do
  local limit = limits.of(need.name)
  local hold = get(limit, "hold")
  if limits.room(limit, limits.class_of(sub), hold == sub) < need.units then
    local is_rate = get(limit, "kind") == "rate"
    blocked[#blocked + 1] = {
      limit = need.name, needs = need.units, used = number(limit, "used") or 0, of = number(limit, is_rate and "burst" or "limit"),
      paused = get(limit, "paused") ~= nil, free_at = is_rate and rates.refilled_at(limit, need.units) or nil,
    }
    if hold and hold ~= sub and limits.room(limit, limits.class_of(sub), true) >= need.units then held_for = get(act.holds, hold) end
  end
end

-- Of the workers seen lately: can one serve it, and is it only their reserve that is free?
local capable, only_reserve = 0, 0
for _, worker in ipairs(call("ZRANGEBYSCORE", keys.workers, now - setting("worker_ttl"), "+inf", "LIMIT", 0, 1000)) do
  local record = workers.record(worker)
  if record and get(record, "state") == "active" and workers.serves(workers.profile_of(record, true), lane) then
    capable = capable + 1
    local used, open_used = call("ZCARD", keys.running(worker)), call("ZCOUNT", keys.running(worker), 1, 1)
    local open = number(record, "capacity") - number(record, "reserve") - open_used
    if place ~= "0n" and open <= 0 and used < number(record, "capacity") then only_reserve = only_reserve + 1 end
  end
end

local after = queues.threshold(place)
return {"ok", int(now), cjson.encode({
  state = "queued", place = place, tag = int(tag), position = position + beside + 1, ahead = ahead, arrival = number(t, "arrival"),
  promotes_at = after and number(t, "arrival") + after or nil, blocked_by = blocked, held_for = held_for,
  holds = get(act.holds, sub) ~= nil, type_paused = queues.is_paused(lane), capable_workers = capable, only_reserve_free = only_reserve,
})}
