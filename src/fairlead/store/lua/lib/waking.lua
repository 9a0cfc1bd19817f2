-- Waking exactly as many idle workers as there is new work for.

local hash, whole, load_fields, get, put = hashes.hash, hashes.whole, hashes.load_fields, hashes.get, hashes.put
local commit = acts.commit

-- Who waits longest of those who do the same, and can serve this lane; without a lane, anybody.
function waking.idler_for(lane)
  for profile, text in pairs(act.idle.known) do
    local worker = text and (not lane or workers.serves(text, lane)) and workers.next_idler(profile)
    if worker then return worker end
  end
end

-- Also answers whose task it was handed.
local function wake_one(lane)
  local worker = waking.idler_for(lane)
  if not worker then return false end
  workers.not_idle(worker)
  local handed = lane and act.hand_over and act.hand_over(worker)
  if not handed then workers.call(worker.id, lane or "alarm") end
  return true, handed
end

-- Wakes idle workers for up to `count` tasks of a sub-queue, as far as its limits have room that no other was woken for.
local function wake_for(sub, count, promised)
  if queues.is_paused(sub) then return 0 end
  local woken = 0
  while woken < count do
    for _, need in ipairs(limits.needs_of(sub)) do
      local limit = limits.of(need.name)
      local left = limits.room(limit, limits.class_of(sub), get(limit, "hold") == sub) - (promised[need.name] or 0)
      if left < need.units then return woken end
    end
    local somebody, handed = wake_one(limits.lane_of(sub))
    if not somebody then return woken end
    if not handed then -- what is handed over has its units already
      for _, need in ipairs(limits.needs_of(sub)) do promised[need.name] = (promised[need.name] or 0) + need.units end
    end
    if not handed or handed == sub then woken = woken + 1 end -- else it was a better one
  end
  return woken
end

-- One idle worker for each lease that ended in this act, if a task that needs its limit can start now: of all sub-queues, for
-- nobody may have looked at one since the limit got full.
local function wake_for_freed(name, count, promised)
  for sub, home in pairs(whole(keys.home) and act.homes.known or NONE) do
    if count <= 0 then return end
    for _, need in ipairs(home and limits.needs_of(sub) or NONE) do
      if need.name == name then
        local waiting = call("ZCARD", keys.queue(sub)) - (act.entered_subs[sub] or 0)
        count = count - wake_for(sub, math.min(count, waiting), promised)
      end
    end
  end
end

-- One for each task that entered its sub-queue in this act and can start now, and one for each unit that got free; or one
-- that finds nothing, but learns from its claim until when there is nothing.
function waking.wake_idle()
  if next(act.entered_subs) == nil and next(act.freed_limits) == nil and not act.tell_time or not whole(keys.idle) then return end
  local promised, woken = {}, 0 -- limit -> units that workers were woken for
  for sub, count in pairs(act.entered_subs) do woken = woken + wake_for(sub, count, promised) end
  for name, count in pairs(act.freed_limits) do wake_for_freed(name, count, promised) end
  if act.tell_time and woken == 0 then wake_one() end
end

-- Who was full, or waits for high alone, looks again when a place of it is free: what waits was announced before, to others.
local function wake_the_freed()
  for id, freed in pairs(act.dropped) do
    local worker = load_fields(hash(keys.worker(id)), {"idle", "full"})
    local profile = freed.not_high > 0 and get(worker, "idle")
    if get(worker, "full") or profile and string.sub(get(act.idle, profile) or "", 1, 1) == "r" then
      worker.id = id
      workers.not_idle(worker)
      put(worker, "full", nil)
      workers.call(id, "room")
    end
  end
end

-- The end of an act that queues or frees.
function waking.settle_and_commit()
  queues.settle()
  wake_the_freed()
  waking.wake_idle()
  commit()
end
