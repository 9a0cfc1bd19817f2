-- A waiter lets a better task go first if a worker can start it now, but only for as long as that worker needs to claim it.

local MOST_LOOKS = 16 -- at heads, to find a task that goes first
local DEFERS_FOR = 2000 -- ms in which a worker that was called, or has just reported, claims

-- profile -> whether its ready workers have open room. Ready workers wait, or will ask next because they have just reported or were
-- not given all they wanted.
local function ready_profiles()
  local ready = {}
  local function note(profile, open)
    if profile then ready[profile] = ready[profile] or open end
  end
  for line, waiting in pairs((whole(keys.idle) or hash(keys.idle)).known) do
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

-- The lanes that ready workers look at.
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

-- The first of a lot as a head, if it can start.
local function head_of(lot, lane)
  local member, tag = first(ordered(keys.parked(lot)))
  if not member or limits.blocking(names.about(member)) then return nil end
  return {class = lane.class, turn = choice.turn_of(lane.class, lane.promoted), tag = tag, seq = names.seq_of(member), lane = lane.name}
end

-- The head of a task that needs this limit, ranks before the waiter and can start now on a ready worker; nil: none.
local function better_task(limit, waiter)
  local lanes, by_name = ready_lanes()
  if #lanes == 0 then return nil end
  local sub, head = choice.best(lanes, true, {left = MOST_LOOKS})
  if not sub or not choice.is_better(head, waiter) then return nil end
  if limits.units_of(subs.needs(sub), limit.name) then return head end
  for _, lot in ipairs(lots.of(limit.name)) do
    local lane = by_name[names.lot_parts(lot).lane]
    local other = lane and head_of(lot, lane)
    if other and choice.is_better(other, waiter) then return other end
  end
end

-- The task for which the waiters of a limit wait, and since when; nil when they do not. It ends when units are taken.
local function deferral(limit)
  local since, class, turn, tag, seq, lane = string.match(get(limit, "deferred") or "", "^(%d+) (%d) (%d) (%d+) (%d+) (.*)$")
  since = tonumber(since)
  if not since or since > act.instant then return nil end -- none, or the clock was set back
  return {since = since, class = tonumber(class), turn = tonumber(turn), tag = tonumber(tag), seq = seq, lane = lane}
end

-- Until when this waiter lets a task go first; nil: it does not.
function deferring.until_when(limit, record)
  local own, known = waiters.rank(record), deferral(limit)
  if known and (act.instant - known.since >= DEFERS_FOR or choice.is_better(own, known)) then return nil end
  local since = known and known.since or act.instant
  if not known then
    local task = better_task(limit, own)
    if not task then return nil end
    local parts = {int(since), int(task.class), int(task.turn), int(task.tag), task.seq, task.lane}
    put(limit, "deferred", table.concat(parts, " "))
  end
  return since + DEFERS_FOR
end

-- A worker of this profile has claimed: it does not start what it left behind.
function deferring.claimed_by(profile)
  if not waiters.anybody() then return end
  for _, name in ipairs(up_to(ordered(keys.revisits), math.huge, MOST_LOOKS)) do
    local limit = limits.of(name)
    local known = deferral(limit)
    if known and audiences.registry().has[names.audience_of(known.lane)][profile] then
      put(limit, "deferred", nil)
      acquiring.look_at(name)
    end
  end
end
