-- Waiters: acquires that wait in the line of their limit (docs/scheduler.md, Waiting acquires).
--
-- A waiter is the record of a lease that has no fence yet. It has a place, a tag and a number, as a task has.

waiters.MOST = 10000 -- of one limit
waiters.MOST_SEARCHED = 128 -- of one limit, for one that fits
local SILENT_FOR = 15000 -- ms: a waiter asks every five seconds, so one that is silent for longer is gone
local OF_CLASS = 2 ^ 50 -- greater than every tag

function waiters.record(id)
  local record = whole(keys.lease(id))
  if not record or get(record, "state") ~= "waiting" then return nil end
  record.id = id
  return record
end

function waiters.member(record)
  return names.waiter(number(record, "seq"), get(record, "place"), number(record, "units"), record.id)
end

local function count(limit, place, by)
  change_count(act.meta, "waiters_" .. place, by)
  return change_count(limit, "waiters", by)
end

-- Puts a record with its limit, units and holder in line. It is withdrawn unless its caller asks again.
function waiters.enter(record, place, account, weight, lease)
  local limit = limits.of(get(record, "limit"))
  local tag = fair_share.reserve(place, account, fair_share.stride(weight, fair_share.factor(account)), 1)
  local fields = {state = "waiting", place = place, tag = tag, seq = next_number("seq"), lease = lease, asked = act.instant}
  for field, value in pairs(fields) do put(record, field, value) end
  insert(ordered(keys.waiters(limit.name)), waiters.member(record), subs.class(place) * OF_CLASS + tag)
  count(limit, place, 1)
end

function waiters.stay(record, wait)
  local instant = act.instant + math.min(wait, SILENT_FOR)
  put(record, "wait_until", instant)
  add(ordered(keys.waits), "lease:" .. record.id, instant)
  alarm_at(instant)
end

local function leave_line(limit, member, place)
  remove(ordered(keys.waiters(limit.name)), member)
  if count(limit, place, -1) <= 0 then
    remove(ordered(keys.revisits), limit.name)
    put(limit, "deferred", nil)
  end
  act.left_limits[limit.name] = limit
  fair_share.left(place)
end

function waiters.leave(limit, record)
  leave_line(limit, waiters.member(record), get(record, "place"))
  remove(ordered(keys.waits), "lease:" .. record.id)
end

-- Its time is over, or its caller no longer wants the units.
function waiters.withdraw(record)
  waiters.leave(limits.of(get(record, "limit")), record)
  for field in pairs(record.known) do put(record, field, nil) end
end

local function fits(limit, member)
  local place, units = names.cut_waiter(member)
  return limits.room(limit, subs.class(place), false) >= units
end

function waiters.first_that_fits(limit)
  if limits.room(limit, 0, true) < 1 then return nil end
  local line = ordered(keys.waiters(limit.name))
  local member = first(line)
  if not member or fits(limit, member) then return member end
  for _, other in ipairs(up_to(line, math.huge, waiters.MOST_SEARCHED)) do
    if fits(limit, other) then return other end
  end
end

-- nil when it was deleted: then it leaves the line.
function waiters.of(limit, member)
  local place, _, id = names.cut_waiter(member)
  local record = waiters.record(id)
  if record then return record end
  leave_line(limit, member, place)
  next_number("missing_records")
end

function waiters.rank(record)
  local class = subs.class(get(record, "place"))
  return {class = class, turn = choice.turn_of(class, false), tag = number(record, "tag"), seq = names.member(number(record, "seq"), "")}
end

-- Does any acquire wait?
function waiters.anybody()
  return get(act.meta, "waiters_0n") or get(act.meta, "waiters_1n") or get(act.meta, "waiters_2n")
end
