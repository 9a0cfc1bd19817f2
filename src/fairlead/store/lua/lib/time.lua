-- What time alone does (docs/scheduler.md): each kind in the order of its instants, at most 128 at once.
--
-- USES     endings

local AT_ONCE = 128
local OVERDUE = {
  code = "timeout", message = "it ran longer than its timeout", retriable = true, jitter = 1000, retry_after = 0,
}

-- Nobody will report on task `id` any more: past its deadline it is a timeout, else its worker was lost.
local function end_run(id, now)
  local t = task_record(id)
  if not t then
    drop_orphan(id)
  elseif get(t, "stopping") then
    drop_lease(t)
  elseif now >= number(t, "deadline") then
    book_run(t, now)
    fail_run(t, "expire", OVERDUE, now)
  else
    crash(t, "expire", now)
  end
end

local function end_leases(now)
  local due = up_to(leases, now, AT_ONCE)
  for _, holder in ipairs(due) do
    local bare = string.match(holder, "^lease:(.*)$")
    if bare then
      drop_bare_lease(bare, bare_lease(bare))
    else
      end_run(holder, now)
    end
  end
  return #due
end

local function end_delays(now)
  local due = up_to(ordered(delayed_key), now, AT_ONCE)
  for _, id in ipairs(due) do
    local t = task_record(id)
    end_delay(t)
    requeue(t, "promote", number(t, "run_at"), now)
  end
  return #due
end

local function end_waits(now)
  local due = up_to(ordered(waits_key), now, AT_ONCE)
  for _, id in ipairs(due) do
    local t = task_record(id)
    if get(t, "state") == "queued" then -- a delay that ended too, but did not fit into this act, comes first
      remove(ordered(waits_key), id)
      dequeue(t)
      set_error(t, "RESOURCE_EXHAUSTED", "it was not started within its max_wait_seconds", true)
      finish(t, "promote", "failed", now, {code = "RESOURCE_EXHAUSTED"})
    end
  end
  return #due
end

local function age_out_of(place, now)
  local after = threshold(place)
  if not after then return 0 end
  local due = up_to(age_of(place), now - after, AT_ONCE)
  local to = int(tonumber(string.sub(place, 1, 1)) - 1) .. "p"
  for _, id in ipairs(due) do
    local t = task_record(id)
    dequeue(t)
    enter(t, to)
    step_promoted(t, tonumber(string.sub(to, 1, 1)), now)
    event(t, "promote", "queued", "queued", now, {from = place, to = to})
  end
  return #due
end

local function show_refilled(now)
  local due = up_to(ordered(refills_key), now, AT_ONCE)
  for _, lot in ipairs(due) do
    local name = string.match(lot, "^[^=]+")
    touched_lots[lot] = touched_lots[lot] or "room"
    freed_limits[name] = math.max(0, room(limit_of(name), 0, true))
  end
  settle()
  return #due
end

local function first_score(set)
  local _, score = first(set)
  return score
end

-- The next instant at which time alone does something.
local function next_alarm()
  local instants = {}
  for _, key in ipairs({leases_key, delayed_key, waits_key, refills_key}) do
    instants[#instants + 1] = first_score(ordered(key))
  end
  for _, place in ipairs({"2n", "1n", "1p"}) do
    local after = threshold(place)
    local arrival = after and first_score(age_of(place))
    if arrival then instants[#instants + 1] = arrival + after end
  end
  if #instants > 0 then return math.min(unpack(instants)) end
end

local function promote_due(now)
  local most = math.max(end_delays(now), end_waits(now), age_out_of("2n", now), age_out_of("1n", now), age_out_of("1p", now))
  return math.max(most, show_refilled(now))
end

-- Everything due by now; when a kind had more than fits, the alarm stays so that the next act goes on.
local function advance(now)
  local alarm = number(meta, "alarm")
  if not alarm or alarm > now then return end
  local most = math.max(end_leases(now), promote_due(now))
  put(meta, "alarm", most >= AT_ONCE and now or next_alarm())
end
