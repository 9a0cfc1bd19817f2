-- Waking idle workers for new work: for as many tasks as came or got room in this act. A worker that is woken and leaves a task behind
-- that could start wakes the next one (the baton), so no task is forgotten when the woken worker does something else.

local MOST_LOOKS = 16 -- at heads, to find one for the baton
local MOST_COUNTED = 8 -- sub-queues of a lot
local MOST_LINES = 16 -- of idle workers
local NET = 5000 -- ms after which an idle worker claims by itself, and learns of an alarm

-- May a worker of this line run something of this lane?
local function line_serves(line, lane)
  local profile, open = names.cut_idle_line(line)
  return (open or names.place_of(lane) == "0n") and audiences.registry().has[names.audience_of(lane)][profile]
end

-- A waiting worker that serves this lane; without a lane, any.
function waking.idler_for(lane)
  for line, count in pairs(hash(keys.idle).known) do
    if count and tonumber(count) > 0 and (not lane or line_serves(line, lane)) then
      local worker = workers.next_idler(line)
      if worker then return worker end
    end
  end
end

-- How many workers wait that serve this lane.
function waking.count_idlers(lane)
  local count = 0
  if not workers.anybody_idle() then return count end
  for line, waiting in pairs(hash(keys.idle).known) do
    if waiting and line_serves(line, lane) then count = count + tonumber(waiting) end
  end
  return count
end

-- Returns whether there was one, and the sub-queue whose task it was handed, in acts that hand over.
local function wake_one(lane)
  local worker = waking.idler_for(lane)
  if not worker then return false end
  workers.not_idle(worker)
  local handed = lane and act.hand_over and act.hand_over(worker)
  if not handed then
    workers.call(worker.id, lane or "alarm")
    if lane then put(worker, "called", act.instant) end
  end
  return true, handed
end

-- Wakes idle workers for up to `count` tasks of a sub-queue, as far as its limits have room for which no other was woken.
local function wake_for(sub, count, promised)
  if limits.blocking(sub) then return end
  while count > 0 do
    for _, need in ipairs(subs.needs(sub)) do
      local limit = limits.of(need.name)
      local left = limits.room(limit, subs.class(sub), get(limit, "hold") == sub) - (promised[need.name] or 0)
      if left < need.units then return end
    end
    local somebody, handed = wake_one(subs.lane(sub))
    if not somebody then return end
    if not handed then -- a task that is handed over has its units already
      for _, need in ipairs(subs.needs(sub)) do promised[need.name] = (promised[need.name] or 0) + need.units end
    end
    if not handed or handed == sub then count = count - 1 end -- else it was a better one
  end
end

-- How many tasks wait in a lot; infinity for a large one.
local function waiting_in(lot)
  local count, found = 0, call("ZRANGE", keys.parked(lot), 0, MOST_COUNTED)
  if #found > MOST_COUNTED then return math.huge end
  for _, member in ipairs(found) do count = count + call("ZCARD", keys.queue(names.about(member))) end
  return count
end

-- A limit has more room: wakes, for each of its lots that is shown, as many workers as tasks fit into the units that got free, but at
-- least one: units that were free before may be enough only together with them.
local function wake_for_freed(name, units, promised)
  for _, lot in ipairs(units > 0 and lots.of(name) or NONE) do
    local parts = names.lot_parts(lot)
    local each = limits.units_of(parts.needs, name)
    local count = get(hash(keys.markers), lot) and math.min(waiting_in(lot), math.max(1, math.floor(units / each))) or 0
    local room = limits.room(limits.of(name), parts.class, parts.is_owner)
    while count > 0 and room - (promised[name] or 0) >= each do
      if not wake_one(parts.lane) then break end
      promised[name] = (promised[name] or 0) + each
      count = count - 1
    end
  end
end

-- Wakes workers for tasks that were queued in this act and can start now, and for units that got free. The worker that watches the
-- alarm, or another one instead, is woken too when it has changed.
function waking.wake()
  acquiring.grant_freed()
  if next(act.entered_subs) == nil and next(act.freed) == nil and not act.announce_alarm or not workers.anybody_idle() then return end
  local promised = {} -- limit -> units that workers were woken for
  for sub, count in pairs(act.entered_subs) do wake_for(sub, count, promised) end
  for name, units in pairs(act.freed) do wake_for_freed(name, units, promised) end
  local alarm = number(act.meta, "alarm")
  if not act.announce_alarm or not alarm or alarm - act.instant > NET then return end
  local watcher = get(act.meta, "watcher")
  if watcher then workers.call(watcher, "alarm") else wake_one() end
end

-- The lanes that waiting workers can serve; of many lines only some.
local function lanes_of_idlers()
  local lanes, seen, lines = {}, {}, 0
  for line, count in pairs(hash(keys.idle).known) do
    if count and tonumber(count) > 0 and lines < MOST_LINES then
      lines = lines + 1
      for _, lane in ipairs(choice.lanes_of((names.cut_idle_line(line)))) do
        if not seen[lane.name] and line_serves(line, lane.name) then
          seen[lane.name] = true
          lanes[#lanes + 1] = lane
        end
      end
    end
  end
  return lanes
end

-- A woken worker may leave behind the task it was woken for, or another one that can start by now: a waiting worker is woken for the
-- best of them.
function waking.pass_on()
  if not workers.anybody_idle() then return end
  local lanes, steps = lanes_of_idlers(), {left = MOST_LOOKS}
  local sub, head = choice.best(lanes, true, steps)
  if sub then
    wake_one(head.lane)
  elseif steps.left == 0 then
    wake_one(lanes[1].name) -- it continues to look
  end
end

-- A worker that was full, or waits for high only, looks again when it has a free slot: others were woken for the waiting tasks before.
local function wake_the_freed()
  for id, freed in pairs(act.dropped) do
    local worker = load_fields(hash(keys.worker(id)), {"idle", "full"})
    local line = freed.not_high > 0 and get(worker, "idle")
    local _, is_open = names.cut_idle_line(line or "o")
    if get(worker, "full") or not is_open then
      worker.id = id
      workers.not_idle(worker)
      put(worker, "full", nil)
      workers.call(id, "room")
    end
  end
end

-- What still waits although workers are idle may wait for what other runs can be asked to give back.
function waking.relieve()
  if #tiers.all() == 0 then return end
  if workers.anybody_idle() then relief.for_lanes(lanes_of_idlers()) end
  relief.for_slots()
  queues.reindex() -- a slot may be kept now
end

-- The end of an act that queues or frees.
function waking.reindex_and_commit()
  queues.reindex()
  wake_the_freed()
  waking.wake()
  waking.relieve()
  commit()
end
