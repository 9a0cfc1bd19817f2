-- Units for waiting acquires (docs/scheduler.md, Waiting acquires): they go to the best of the waiters of a limit and of the tasks
-- that a worker can start now, at the end of each act in which its room has changed.

local MOST_GRANTED = 64 -- in one act

-- The waiters of this limit are considered at the end of this act.
function acquiring.look_at(name)
  act.room_changed[name] = true
end

-- Units of a limit are taken without a task.
function acquiring.begin_lease(id, record, lease)
  local name, fence, instant = get(record, "limit"), next_fence(), act.instant + lease
  local needs = limits.needs(name .. "=" .. int(number(record, "units")))
  overlap.remember_company(name, {}, nil)
  limits.take("lease:" .. id, needs)
  put(record, "fence", fence)
  put(record, "until", instant)
  put(record, "since", act.instant)
  metrics.acquired(needs, act.instant - (number(record, "asked") or act.instant))
  put(record, "asked", nil)
  leases.lease_until("lease:" .. id, instant)
end

local function wake(id)
  write({"RPUSH", keys.granted(id), "look"})
  write({"PEXPIRE", keys.granted(id), 30000})
end

local function grant(limit, record)
  local place, lease = get(record, "place"), number(record, "lease")
  waiters.leave(limit, record)
  fair_share.started(place, number(record, "tag"))
  choice.count_turn(place)
  for _, field in ipairs({"state", "place", "tag", "seq", "lease", "wait_until", "look"}) do put(record, field, nil) end
  acquiring.begin_lease(record.id, record, lease)
  act.granted = act.granted + 1
  if record.id ~= act.asker then wake(record.id) end
end

-- The limit is considered again then. `record` is the waiter that asks again by itself: there may be no other caller.
local function revisit_at(limit, instant, record)
  add(ordered(keys.revisits), limit.name, instant)
  start_at(instant)
  act.looks_again[record.id] = true
  local known = number(record, "look")
  if known and known > act.instant and known <= instant then return end
  put(record, "look", instant)
  if record.id ~= act.asker then wake(record.id) end
end

-- No waiter fits: a rate refills by time alone, first for the waiter that needs least.
local function watch_refill(limit)
  if get(limit, "kind") ~= "rate" or get(limit, "paused") then return end
  local least, chosen = number(limit, "burst") + 1, nil
  for _, member in ipairs(up_to(ordered(keys.waiters(limit.name)), math.huge, waiters.MOST_SEARCHED)) do
    local _, units = names.cut_waiter(member)
    if units < least then least, chosen = units, member end
  end
  local record = chosen and waiters.of(limit, chosen)
  if record then revisit_at(limit, rates.refilled_at(limit, least), record) end
end

local function grant_all(limit)
  remove(ordered(keys.revisits), limit.name)
  for _ = 0, MOST_GRANTED do
    local member = waiters.first_that_fits(limit)
    if not member then return watch_refill(limit) end
    local record = waiters.of(limit, member)
    local later = record and (act.granted >= MOST_GRANTED and act.instant or deferring.until_when(limit, record))
    if later then return revisit_at(limit, later, record) end
    if record then grant(limit, record) end
  end
end

-- The limit is due to be considered again.
function acquiring.revisit(name)
  remove(ordered(keys.revisits), name)
  acquiring.look_at(name)
end

-- Gives units to the waiters that are next, of limits whose room has changed in this act.
function acquiring.grant_freed()
  local changed = act.room_changed
  if next(changed) == nil then return end
  act.room_changed = {}
  for name in pairs(changed) do
    local limit = limits.of(name)
    if limit and limit.known.waiters then grant_all(limit) end
  end
  act.room_changed = {}
  queues.reindex()
end

-- A task of `sub` with this head would start. If a waiter fits and ranks before it, the waiter gets its units now.
function acquiring.goes_first(sub, head)
  for _, need in ipairs(subs.needs(sub)) do
    local limit = limits.of(need.name)
    local member = limit.known.waiters and waiters.first_that_fits(limit)
    local record = member and waiters.of(limit, member)
    if record and choice.is_better(waiters.rank(record), head) then
      grant(limit, record)
      queues.reindex()
      return true
    end
  end
  return false
end

-- May a new acquire get its units without waiting in line?
function acquiring.may_take(limit, class, units, waits)
  if limits.room(limit, class, false) < units or waits and get(limit, "waiting") then return false end
  local member = get(limit, "waiters") and waiters.first_that_fits(limit)
  return not member or subs.class(names.cut_waiter(member)) > class
end

-- The ms after which a waiter should ask again by itself: the first of a line does so at the next alarm. nil: when it is woken.
function acquiring.ask_in(record)
  local alarm = number(act.meta, "alarm")
  local head = first(ordered(keys.waiters(get(record, "limit"))))
  if not alarm or not act.looks_again[record.id] and head ~= waiters.member(record) then return nil end
  return math.max(0, alarm - act.instant)
end
