-- What time alone does (docs/scheduler.md): each kind in the order of its instants, as much as fits into the act.

local OVERDUE = {
  code = "timeout", message = "it ran longer than its timeout", retriable = true, jitter = 1000, retry_after = 0,
}

local TIER_OVERDUE = {code = "DEADLINE", message = "it ran longer than its tier allows", retriable = false}

local UNSTARTED = {code = "RESOURCE_EXHAUSTED", message = "it was not started within its max_wait_seconds"}

-- For the log of the caller; `status` is the new state of the task.
local function note_lost_run(t, code)
  local facts = t.known.facts
  local run = {
    task = t.id, type = facts.type, attempt = records.attempt(t), fence = number(t, "fence"), job = facts.job_id, step = facts.step,
    trace = facts.trace_id, worker = get(t, "worker"), code = code,
  }
  act.lost_runs[#act.lost_runs + 1] = run
  return run
end

-- Ends the run of task `id`, on which no report will come: past its deadline it is a timeout, otherwise its worker was lost.
-- `seen_dead`: that worker was seen to die.
local function end_run(id, now, seen_dead)
  local t = records.find(id)
  if not t then
    orphans.add(id)
    return nil
  end
  local alone = not losses.in_company(t)
  if get(t, "stopping") then
    leases.drop(t)
    return t
  end
  local is_overdue = now >= number(t, "deadline")
  if not is_overdue then losses.count(t) end
  local overdue = is_overdue and (get(t, "bounded") and TIER_OVERDUE or OVERDUE)
  local run = note_lost_run(t, (overdue or endings.LOST).code)
  if overdue then
    endings.learn_run(t, now)
    endings.fail_run(t, "expire", overdue, now)
  elseif alone and (seen_dead or losses.was_outlived(t)) then
    endings.crash_run(t, "expire", now)
  else
    endings.lose_run(t, now)
  end
  run.status = get(t, "state")
  return t
end

local function end_bare(id, holder)
  local lease = leases.bare(id)
  if lease then leases.drop_bare(id, lease) else orphans.add(holder) end
  return 2 -- it has one limit
end

-- Returns whether there may be more.
function time.end_leases(now)
  local left = quota.move_due(ordered(keys.leases), now, quota.share(), function(holder)
    local bare = string.match(holder, "^lease:(.*)$")
    return bare and end_bare(bare, holder) or quota.work_of(end_run(holder, now))
  end)
  return left <= 0
end

-- All leases of a worker that was seen to die, whenever they end. Returns whether there are more.
function time.end_leases_of(dead, now)
  local running = ordered(keys.running(dead))
  local left = quota.move_due(running, 1, quota.share(), function(id)
    local t = end_run(id, now, true)
    remove(running, id)
    return quota.work_of(t)
  end)
  return left <= 0 and first(running) ~= nil
end

local function end_delay(t, now)
  backlog.end_delay(t)
  endings.requeue(t, "promote", number(t, "run_at"), now)
  if t.known.wait_until then leases.wait_at_most_until(t, number(t, "wait_until")) end
end

local function first_score(set)
  local _, score = first(set)
  return score
end

-- Its record is gone.
local function drop_missing(delayed, member)
  remove(delayed, member)
  change_count(act.meta, "delayed", -1)
  next_number("missing_records")
end

-- The best base priority first. Returns whether there may be more.
local function end_delays(now)
  local share = quota.share()
  for priority = 0, 2 do
    local delayed = ordered(keys.delayed(priority))
    share = quota.move_due(delayed, now, share, function(member)
      local t = records.find(names.about(member))
      if t then end_delay(t, now) else drop_missing(delayed, member) end
      return quota.work_of(t)
    end)
    if share <= 0 and (first_score(delayed) or math.huge) <= now then
      act.overdue = priority
      return true
    end
  end
  return share <= 0
end

local function end_waits(now)
  local waits = ordered(keys.waits)
  local left = quota.move_due(waits, now, quota.share(), function(id)
    remove(waits, id)
    local bare = string.match(id, "^lease:(.*)$")
    local waiter, t = bare and waiters.record(bare), not bare and records.find(id)
    if waiter then
      metrics.rejected(limits.of(get(waiter, "limit")))
      waiters.withdraw(waiter)
    elseif t then
      queues.dequeue(t)
      endings.set_error(t, UNSTARTED, true)
      endings.finish(t, "promote", "failed", now, {code = "RESOURCE_EXHAUSTED"})
    end
    return quota.work_of(t)
  end)
  return left <= 0
end

local function end_left_sessions(now)
  local left = quota.move_due(ordered(keys.attached), now, quota.share(), function(id)
    return quota.work_of(sessions.end_left(id, now))
  end)
  return left <= 0
end

local function age_out_of(place, now)
  local after = queues.threshold(place)
  if not after then return false end
  local to = int(tonumber(string.sub(place, 1, 1)) - 1) .. "p"
  local left = quota.move_due(queues.age_of(place), now - after, quota.share(), function(member)
    local t = records.find(names.about(member))
    if t then
      queues.dequeue(t)
      queues.enter(t, to)
      jobs.step_promoted(t, tonumber(string.sub(to, 1, 1)), now)
      events.add(t, "promote", "queued", "queued", now, {from = place, to = to})
    else
      remove(queues.age_of(place), member) -- its record is gone: its queue drops it when its turn comes
    end
    return quota.work_of(t)
  end)
  return left <= 0
end

local function show_refilled(now)
  local left = quota.move_due(ordered(keys.refills), now, quota.share(), function(lot)
    act.touched_lots[lot] = act.touched_lots[lot] or "room"
    local needs = names.lot_parts(lot).needs
    for _, need in ipairs(needs) do
      act.freed[need.name] = math.max(0, limits.room(limits.of(need.name), 0, true))
    end
    return 1 + #needs
  end)
  queues.reindex()
  return left <= 0
end

local function revisit_limits(now)
  local left = quota.move_due(ordered(keys.revisits), now, quota.share(), function(name)
    acquiring.revisit(name)
    return 1
  end)
  return left <= 0
end

local function search_orphans()
  local searched, more = orphans.search(quota.share())
  act.timed = act.timed + searched
  return more
end

-- The next instant at which time alone does something.
local function next_alarm()
  local instants = {}
  for _, key in ipairs({
    keys.leases, keys.delayed(0), keys.delayed(1), keys.delayed(2), keys.waits, keys.attached, keys.refills, keys.revisits, keys.orphans,
  }) do
    instants[#instants + 1] = first_score(ordered(key))
  end
  for _, place in ipairs({"2n", "1n", "1p"}) do
    local after = queues.threshold(place)
    local arrival = after and first_score(queues.age_of(place))
    if arrival then instants[#instants + 1] = arrival + after end
  end
  if #instants > 0 then return math.min(unpack(instants)) end
end

-- Returns whether there may be more.
function time.promote_due(now)
  local more = end_delays(now)
  more = end_waits(now) or more
  more = end_left_sessions(now) or more
  for _, place in ipairs({"2n", "1n", "1p"}) do more = age_out_of(place, now) or more end
  more = show_refilled(now) or more
  more = revisit_limits(now) or more
  return search_orphans() or more
end

-- Does what is due. What does not fit into this act leaves the alarm due, so that the next act continues.
function time.advance(now)
  rates.follow_clock(now)
  local alarm = number(act.meta, "alarm")
  if not alarm or alarm > now then return end
  time.end_leases(now)
  time.promote_due(now)
  put(act.meta, "alarm", next_alarm())
end
