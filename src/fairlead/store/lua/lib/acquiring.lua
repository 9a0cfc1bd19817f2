-- Acquires that wait: leases without a task, in line with the tasks that need the same limit (docs/scheduler.md, Waiting acquires).
--
-- A waiter has a place, a tag and a number, as a task has. Units go to the best of the waiters and of the tasks that some worker can
-- start now. A waiter that ranks after such a task lets it go first, but only for as long as a worker needs to claim it.

local int, write = unit.int, unit.write
local whole, get, number, put = hashes.whole, hashes.get, hashes.number, hashes.put
local change_count = hashes.change_count
local ordered, remove, insert, add = sets.ordered, sets.remove, sets.insert, sets.add
local first, up_to, members = sets.first, sets.up_to, sets.members
local next_number, next_fence, setting = acts.next_number, acts.next_fence, acts.setting

acquiring.MOST_WAITERS = 10000 -- of one limit
local MOST_GRANTED, MOST_SEARCHED = 64, 128 -- of one limit, in one act
local MOST_LOOKS = 16 -- at heads, to find a task that goes first
local DEFERS_FOR = 2000 -- ms in which a worker that was called, or has just reported, claims
local SILENT_FOR = 15000 -- ms: a waiter asks every five seconds, so one that is silent for longer is gone
local OF_CLASS = 2 ^ 50 -- greater than every tag

function acquiring.waiter(id)
  local record = whole(keys.lease(id))
  if not record or get(record, "state") ~= "waiting" then return nil end
  record.id = id
  return record
end

-- At the end of this act the waiters of this limit are looked at.
function acquiring.look_at(name)
  act.room_changed[name] = true
end

-- Units of a limit are taken without a task.
function acquiring.begin_lease(id, record, lease)
  local name, fence, instant = get(record, "limit"), next_fence(), act.instant + lease
  overlap.remember_company(name, {}, nil)
  limits.take("lease:" .. id, limits.needs(name .. "=" .. int(number(record, "units"))))
  put(record, "fence", fence)
  put(record, "until", instant)
  leases.lease_until("lease:" .. id, instant)
end

local function member_of(record)
  return names.waiter(number(record, "seq"), get(record, "place"), number(record, "units"), record.id)
end

local function count(limit, place, by)
  change_count(act.meta, "waiters_" .. place, by)
  return change_count(limit, "waiters", by)
end

-- Puts a record with its limit, units and holder in line. It gives up unless it is heard of again.
function acquiring.enter(record, place, account, weight, lease)
  local limit = limits.of(get(record, "limit"))
  local tag = fair_share.reserve(place, account, fair_share.stride(account, weight), 1)
  local fields = {state = "waiting", place = place, tag = tag, seq = next_number("seq"), lease = lease}
  for field, value in pairs(fields) do put(record, field, value) end
  insert(ordered(keys.waiters(limit.name)), member_of(record), subs.class(place) * OF_CLASS + tag)
  count(limit, place, 1)
end

function acquiring.stay(record, wait)
  local instant = act.instant + math.min(wait, SILENT_FOR)
  put(record, "wait_until", instant)
  add(ordered(keys.waits), "lease:" .. record.id, instant)
  acts.alarm_at(instant)
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

local function leave(limit, record)
  leave_line(limit, member_of(record), get(record, "place"))
  remove(ordered(keys.waits), "lease:" .. record.id)
end

-- Its time is over, or it does not want the units any more.
function acquiring.withdraw(record)
  leave(limits.of(get(record, "limit")), record)
  for field in pairs(record.known) do put(record, field, nil) end
end

local function wake(id)
  write({"RPUSH", keys.granted(id), "look"})
  write({"PEXPIRE", keys.granted(id), 30000})
end

local function grant(limit, record)
  local place, lease = get(record, "place"), number(record, "lease")
  leave(limit, record)
  fair_share.started(place, number(record, "tag"))
  choice.book_turn(place)
  for _, field in ipairs({"state", "place", "tag", "seq", "lease", "wait_until", "look"}) do put(record, field, nil) end
  acquiring.begin_lease(record.id, record, lease)
  if record.id ~= act.asker then wake(record.id) end
end

local function fits(limit, member)
  local place, units = names.cut_waiter(member)
  return limits.room(limit, subs.class(place), false) >= units
end

local function first_that_fits(limit)
  if limits.room(limit, 0, true) < 1 then return nil end
  local line = ordered(keys.waiters(limit.name))
  local member = first(line)
  if not member or fits(limit, member) then return member end
  for _, other in ipairs(up_to(line, math.huge, MOST_SEARCHED)) do
    if fits(limit, other) then return other end
  end
end

-- nil when somebody deleted it: then nobody waits behind it.
local function record_of(limit, member)
  local place, _, id = names.cut_waiter(member)
  local record = acquiring.waiter(id)
  if record then return record end
  leave_line(limit, member, place)
  next_number("missing_records")
end

local function rank(record)
  local class = subs.class(get(record, "place"))
  return {class = class, turn = choice.turn_of(class, false), tag = number(record, "tag"), seq = names.member(number(record, "seq"), "")}
end

-- profile -> whether its workers that are ready have open room. Ready are those that wait, and those that ask next, because they
-- have just reported or were not given all they wanted.
local function ready_profiles()
  local ready = {}
  local function note(profile, open)
    if profile then ready[profile] = ready[profile] or open end
  end
  for line, waiting in pairs(whole(keys.idle) and act.idle.known or NONE) do
    if waiting and tonumber(waiting) > 0 and workers.next_idler(line) then note(names.cut_idle_line(line)) end
  end
  for id, freed in pairs(act.dropped) do
    local worker = workers.record(id)
    local lives = worker and act.instant - number(worker, "seen") <= setting("worker_ttl") / 2
    if lives and get(worker, "state") == "active" then
      note(get(worker, "profile"), freed.not_high > 0 or number(worker, "reserve") == 0)
    end
  end
  note(act.asks_again, true)
  return ready
end

-- What ready workers look at.
local function ready_lanes()
  local lanes, seen = {}, {}
  for profile, open in pairs(ready_profiles()) do
    for _, lane in ipairs(choice.lanes_of(profile)) do
      if (open or lane.place == "0n") and not seen[lane.name] then
        lanes[#lanes + 1], seen[lane.name] = lane, lane
      end
    end
  end
  return lanes, seen
end

local function needs(sub, name)
  for _, need in ipairs(subs.needs(sub)) do
    if need.name == name then return true end
  end
  return false
end

-- The first of a lot as a head, if it can start.
local function head_of(lot, lane)
  local member, tag = first(ordered(keys.parked(lot)))
  if not member or limits.blocking(names.about(member)) then return nil end
  return {class = lane.class, turn = choice.turn_of(lane.class, lane.promoted), tag = tag, seq = names.seq_of(member), lane = lane.name}
end

-- The head of a task that needs this limit, ranks before the waiter and can start now on a worker that is ready; nil: none.
local function better_task(limit, waiter)
  local lanes, by_name = ready_lanes()
  if #lanes == 0 then return nil end
  local sub, head = choice.best(lanes, true, {left = MOST_LOOKS})
  if not sub or not choice.is_better(head, waiter) then return nil end
  if needs(sub, limit.name) then return head end
  for _, lot in ipairs(members(ordered(keys.lots(limit.name)))) do
    local _, _, _, lane = names.cut_lot(lot)
    local other = by_name[lane] and head_of(lot, by_name[lane])
    if other and choice.is_better(other, waiter) then return other end
  end
end

-- By time alone the limit is worth a look then. `record` is the waiter that asks again by itself: nobody else may be there.
local function revisit(limit, instant, record)
  add(ordered(keys.revisits), limit.name, instant)
  acts.start_at(instant)
  act.looks_again[record.id] = true
  local known = number(record, "look")
  if known and known > act.instant and known <= instant then return end
  put(record, "look", instant)
  if record.id ~= act.asker then wake(record.id) end
end

-- For which task the waiters of a limit wait, and since when; nil when they do not. It ends when units are taken.
local function deferral(limit)
  local since, class, turn, tag, seq, lane = string.match(get(limit, "deferred") or "", "^(%d+) (%d) (%d) (%d+) (%d+) (.*)$")
  since = tonumber(since)
  if not since or since > act.instant then return nil end -- none, or the clock was set back
  return {since = since, class = tonumber(class), turn = tonumber(turn), tag = tonumber(tag), seq = seq, lane = lane}
end

local function defers(limit, record)
  local own, known = rank(record), deferral(limit)
  if known and (act.instant - known.since >= DEFERS_FOR or choice.is_better(own, known)) then return false end
  local since = known and known.since or act.instant
  if not known then
    local task = better_task(limit, own)
    if not task then return false end
    local parts = {int(since), int(task.class), int(task.turn), int(task.tag), task.seq, task.lane}
    put(limit, "deferred", table.concat(parts, " "))
  end
  revisit(limit, since + DEFERS_FOR, record)
  return true
end

-- A worker of this profile has claimed: what it left behind, it does not start.
function acquiring.claimed_by(profile)
  if not acquiring.anybody() then return end
  for _, name in ipairs(up_to(ordered(keys.revisits), math.huge, MOST_LOOKS)) do
    local limit = limits.of(name)
    local known = deferral(limit)
    if known and audiences.book().has[names.audience_of(known.lane)][profile] then
      put(limit, "deferred", nil)
      acquiring.look_at(name)
    end
  end
end

-- None fits: a rate has room again by time alone, first for the one that needs least.
local function watch_refill(limit)
  if get(limit, "kind") ~= "rate" or get(limit, "paused") then return end
  local least, chosen = number(limit, "burst") + 1, nil
  for _, member in ipairs(up_to(ordered(keys.waiters(limit.name)), math.huge, MOST_SEARCHED)) do
    local _, units = names.cut_waiter(member)
    if units < least then least, chosen = units, member end
  end
  local record = chosen and record_of(limit, chosen)
  if record then revisit(limit, limits.refilled_at(limit, least), record) end
end

local function grant_all(limit)
  remove(ordered(keys.revisits), limit.name)
  for granted = 0, MOST_GRANTED do
    local member = first_that_fits(limit)
    if not member then return watch_refill(limit) end
    local record = record_of(limit, member)
    if record and granted == MOST_GRANTED then return revisit(limit, act.instant, record) end
    if record and defers(limit, record) then return end
    if record then grant(limit, record) end
  end
end

-- Gives units to those waiters whose turn it is, of limits whose room has changed in this act.
function acquiring.settle()
  local changed = act.room_changed
  if next(changed) == nil then return end
  act.room_changed = {}
  for name in pairs(changed) do
    local limit = limits.of(name)
    if limit and get(limit, "waiters") then grant_all(limit) end
  end
  act.room_changed = {}
  queues.settle()
end

-- A task of `sub` with this head would start. Is there a waiter that fits and ranks before it? Then that one gets its units now.
function acquiring.goes_first(sub, head)
  for _, need in ipairs(subs.needs(sub)) do
    local limit = limits.of(need.name)
    local member = get(limit, "waiters") and first_that_fits(limit)
    local record = member and record_of(limit, member)
    if record and choice.is_better(rank(record), head) then
      grant(limit, record)
      queues.settle()
      return true
    end
  end
  return false
end

-- May an acquire that comes now have its units without standing in line?
function acquiring.may_take(limit, class, units, waits)
  if limits.room(limit, class, false) < units or waits and get(limit, "waiting") then return false end
  local member = get(limit, "waiters") and first_that_fits(limit)
  return not member or subs.class(names.cut_waiter(member)) > class
end

-- Does anybody wait?
function acquiring.anybody()
  return get(act.meta, "waiters_0n") or get(act.meta, "waiters_1n") or get(act.meta, "waiters_2n")
end

-- When a waiter should ask again by itself: the first of a line looks after what time does. "": when it is woken.
function acquiring.ask_at(record)
  local alarm = number(act.meta, "alarm")
  local head = first(ordered(keys.waiters(get(record, "limit"))))
  if not alarm or not act.looks_again[record.id] and head ~= member_of(record) then return "" end
  return int(math.max(0, alarm - act.instant))
end
