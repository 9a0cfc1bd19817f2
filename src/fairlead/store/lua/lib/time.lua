-- What time alone does (docs/scheduler.md): each kind in the order of its instants, at most 128 at once, and fewer when the tasks name
-- many limits, each of which costs about as much as a task.

time.AT_ONCE, time.MOST_LIMITS = 128, 200
local OVERDUE = {
  code = "timeout", message = "it ran longer than its timeout", retriable = true, jitter = 1000, retry_after = 0,
}

local UNSTARTED = {code = "RESOURCE_EXHAUSTED", message = "it was not started within its max_wait_seconds"}

function time.count_limits(t)
  return t and #limits.needs(t.known.facts.limits or "") or 0
end

-- Moves what is due in `set`: at most `most`, and none after those that have named MOST_LIMITS limits. `move` returns the task that it
-- has moved. Returns how many, and whether there may be more.
local function move_due(set, instant, most, move)
  local moved, named = 0, 0
  for _, member in ipairs(most > 0 and up_to(set, instant, most) or NONE) do
    if named >= time.MOST_LIMITS then return moved, true end
    named = named + time.count_limits(move(member))
    moved = moved + 1
  end
  return moved, moved == most
end

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
function time.end_run(id, now, seen_dead)
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
  local run = note_lost_run(t, is_overdue and OVERDUE.code or endings.LOST.code)
  if is_overdue then
    endings.learn_run(t, now)
    endings.fail_run(t, "expire", OVERDUE, now)
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
end

-- Returns how many, and whether there may be more.
function time.end_leases(now)
  return move_due(ordered(keys.leases), now, time.AT_ONCE, function(holder)
    local bare = string.match(holder, "^lease:(.*)$")
    if bare then end_bare(bare, holder) else return time.end_run(holder, now) end
  end)
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

-- The best base priority first, at most AT_ONCE of all together.
local function end_delays(now)
  local count = 0
  for priority = 0, 2 do
    local delayed = ordered(keys.delayed(priority))
    local moved, is_full = move_due(delayed, now, time.AT_ONCE - count, function(member)
      local t = records.find(names.about(member))
      if t then end_delay(t, now) else drop_missing(delayed, member) end
      return t
    end)
    count = count + moved
    if is_full and (first_score(delayed) or math.huge) <= now then
      act.overdue = priority
      return count, true
    end
  end
  return count, count == time.AT_ONCE
end

local function end_waits(now)
  return move_due(ordered(keys.waits), now, time.AT_ONCE, function(id)
    remove(ordered(keys.waits), id)
    local bare = string.match(id, "^lease:(.*)$")
    local waiter, t = bare and waiters.record(bare), not bare and records.find(id)
    if waiter then
      waiters.withdraw(waiter)
    elseif t then
      queues.dequeue(t)
      endings.set_error(t, UNSTARTED, true)
      endings.finish(t, "promote", "failed", now, {code = "RESOURCE_EXHAUSTED"})
    end
    return t or nil
  end)
end

local function age_out_of(place, now)
  local after = queues.threshold(place)
  if not after then return 0, false end
  local to = int(tonumber(string.sub(place, 1, 1)) - 1) .. "p"
  return move_due(queues.age_of(place), now - after, time.AT_ONCE, function(member)
    local t = records.find(names.about(member))
    if t then
      queues.dequeue(t)
      queues.enter(t, to)
      jobs.step_promoted(t, tonumber(string.sub(to, 1, 1)), now)
      events.add(t, "promote", "queued", "queued", now, {from = place, to = to})
    else
      remove(queues.age_of(place), member) -- its record is gone: its queue drops it when its turn comes
    end
    return t
  end)
end

local function show_refilled(now)
  local due = up_to(ordered(keys.refills), now, time.AT_ONCE)
  for _, lot in ipairs(due) do
    act.touched_lots[lot] = act.touched_lots[lot] or "room"
    for _, need in ipairs(limits.needs((names.cut_lot(lot)))) do
      act.freed[need.name] = math.max(0, limits.room(limits.of(need.name), 0, true))
    end
  end
  queues.reindex()
  return #due
end

-- The next instant at which time alone does something.
local function next_alarm()
  local instants = {}
  for _, key in ipairs({keys.leases, keys.delayed(0), keys.delayed(1), keys.delayed(2), keys.waits, keys.refills, keys.revisits, keys.orphans}) do
    instants[#instants + 1] = first_score(ordered(key))
  end
  for _, place in ipairs({"2n", "1n", "1p"}) do
    local after = queues.threshold(place)
    local arrival = after and first_score(queues.age_of(place))
    if arrival then instants[#instants + 1] = arrival + after end
  end
  if #instants > 0 then return math.min(unpack(instants)) end
end

-- Returns the largest count of a kind, AT_ONCE where there may be more, and the count of all kinds.
function time.promote_due(now)
  local most, all = 0, 0
  local function count(moved, is_full)
    most, all = math.max(most, is_full and time.AT_ONCE or moved), all + moved
  end
  count(end_delays(now))
  count(end_waits(now))
  for _, place in ipairs({"2n", "1n", "1p"}) do count(age_out_of(place, now)) end
  count(show_refilled(now))
  count(acquiring.revisit_due(now, time.AT_ONCE))
  count(orphans.search())
  return most, all
end

-- Does everything that is due; when a kind had more than fits, the alarm stays due, so that the next act continues. Returns how many.
function time.advance(now)
  rates.follow_clock(now)
  local alarm = number(act.meta, "alarm")
  if not alarm or alarm > now then return 0 end
  local ended = time.end_leases(now)
  local _, moved = time.promote_due(now)
  put(act.meta, "alarm", next_alarm())
  return ended + moved
end
