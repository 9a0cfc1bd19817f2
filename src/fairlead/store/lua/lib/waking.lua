-- Waking exactly as many idle workers as there is new work for.
--
-- USES     workers leases

local hand_over -- to a worker that waits: how, in acts that can; it answers with the sub-queue whose task it was

-- Who waits longest of those who do the same, and can serve this lane; without a lane, anybody.
local function idler_for(lane)
  for profile, text in pairs(idle.known) do
    local worker = text and (not lane or serves(text, lane)) and next_idler(profile)
    if worker then return worker end
  end
end

-- Also answers whose task it was handed.
local function wake_one(lane)
  local worker = idler_for(lane)
  if not worker then return false end
  not_idle(worker)
  local handed = lane and hand_over and hand_over(worker)
  if not handed then call_worker(worker.id, lane or "alarm") end
  return true, handed
end

-- Wakes idle workers for up to `count` tasks of a sub-queue, as far as its limits have room that no other was woken for.
local function wake_for(sub, count, promised)
  if is_paused(sub) then return 0 end
  local woken = 0
  while woken < count do
    for _, need in ipairs(needs_of(sub)) do
      local limit = limit_of(need.name)
      local left = room(limit, class_of(sub), get(limit, "hold") == sub) - (promised[need.name] or 0)
      if left < need.units then return woken end
    end
    local somebody, handed = wake_one(lane_of(sub))
    if not somebody then return woken end
    if not handed then -- what is handed over has its units already
      for _, need in ipairs(needs_of(sub)) do promised[need.name] = (promised[need.name] or 0) + need.units end
    end
    if not handed or handed == sub then woken = woken + 1 end -- else it was a better one
  end
  return woken
end

-- One idle worker for each lease that ended in this act, if a task that needs its limit can start now: of all sub-queues, for
-- nobody may have looked at one since the limit got full.
local function wake_for_freed(name, count, promised)
  for sub, home in pairs(whole(home_key) and homes.known or NONE) do
    if count <= 0 then return end
    for _, need in ipairs(home and needs_of(sub) or NONE) do
      if need.name == name then
        local waiting = call("ZCARD", queue_key(sub)) - (entered_subs[sub] or 0)
        count = count - wake_for(sub, math.min(count, waiting), promised)
      end
    end
  end
end

-- One for each task that entered its sub-queue in this act and can start now, and one for each unit that got free; or one
-- that finds nothing, but learns from its claim until when there is nothing.
local function wake_idle_workers()
  if next(entered_subs) == nil and next(freed_limits) == nil and not tell_time or not whole(idle_key) then return end
  local promised, woken = {}, 0 -- limit -> units that workers were woken for
  for sub, count in pairs(entered_subs) do woken = woken + wake_for(sub, count, promised) end
  for name, count in pairs(freed_limits) do wake_for_freed(name, count, promised) end
  if tell_time and woken == 0 then wake_one() end
end

-- Who was full, or waits for high alone, looks again when a place of it is free: what waits was announced before, to others.
local function wake_the_freed()
  for id, freed in pairs(dropped) do
    local worker = load_fields(hash(worker_key(id)), {"idle", "full"})
    local profile = freed.not_high > 0 and get(worker, "idle")
    if get(worker, "full") or profile and string.sub(get(idle, profile) or "", 1, 1) == "r" then
      worker.id = id
      not_idle(worker)
      put(worker, "full", nil)
      call_worker(id, "room")
    end
  end
end

-- The end of an act that queues or frees.
local function settle_and_commit()
  settle()
  wake_the_freed()
  wake_idle_workers()
  commit()
end
