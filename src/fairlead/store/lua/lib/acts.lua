-- The beginning and the end of every act: state, instant, policy, counters, commit.

-- The state of an act. Nothing is carried over from one call to the next, except for tables that stayed empty: an act uses a few of
-- them, and creating them all again would take longer than many an act.
local TABLES = {
  "writes", "texts", -- commands for the commit; texts of numbers, the same few are written for each task of a batch
  "hash_views", "changed_hashes", "ordered_views", "changed_sets",
  "counters", -- of meta, as this act leaves them
  "limit_views", "touched_lists", "touched_lots", -- lists of lots: names.lots_of
  "sub_parts", "sub_names", "route_names", "owners", "kinds",
  "freed", -- limit -> units that got free in this act: as many idle workers may be woken
  "room_changed", -- limits whose waiters are considered before it ends
  "looks_again", -- waiters that ask again by themselves
  "left_limits", -- limits that a task or a lease let go of: some end with it
  "touched_subs", "ages",
  "joined", -- place -> tasks that this act has queued in it
  "entered_subs", -- sub-queue -> tasks that entered it in this act
  "idlers", "idlers_read", -- idle line -> workers found in it
  "ledgers", "known_types", "submitted_keys", "new_kinds",
  "curves", -- of the forecast, by name; false: there is none
  "newly_finished", "newly_dead", "newly_dead_jobs", -- entries that this act adds to the lists of ended tasks and jobs
  "newly_dead_of", -- tenants of such tasks
  "unlinked", -- keys to delete, at the very end of the act
  "last_listed", -- list -> the last number in it, while a namespace is restored
  "unlisted", -- list -> the command that removes what is deleted
  "lost", -- worker -> whether it held one task (alone) or several (in company)
  "begun", -- worker -> {all, not_high}: tasks that it was given in this act
  "dropped", -- worker -> {all, not_high}: its tasks whose leases ended in this act
  "events", "messages", "ended",
  "counted", "acquisitions", -- field of these metrics -> by how much it grows
  "lost_runs", -- runs whose end no worker reports: their failure is in no worker's log, so the reply contains them
  "transitions", -- of tasks, which the caller logs if the policy says so
  "ended_of", -- <state>:<tenant> -> how many
}
local VALUES = {
  "policy", "tiers", "queued", -- read from meta: numbers of the policy, its tiers, place -> tasks that wait
  "instant", "micros", -- of this act: ms, and microseconds as far as they are known
  "announce_alarm", -- a waiting worker has to learn of the alarm
  "overdue", -- the best base priority of the delayed tasks that are due but did not fit into this act
  "registry", "changes_registry", -- profiles and audiences
  "migrates",
  "asker", -- the acquire that asks
  "asks_again", -- the profile of a claim that was not given all it wanted
  "finished_totals", -- {count, bytes} of all that have finished, including this act
  "is_committed",
  "relieved", -- something was taken back for a waiting task
  "hand_over", "find_taker", "hand_straight", -- how a waiting worker is given a task, in acts that do
}

function acts.new()
  act = act or {}
  for i = 1, #TABLES do
    local left = act[TABLES[i]]
    if not left or next(left) ~= nil then act[TABLES[i]] = {} end
  end
  for i = 1, #VALUES do act[VALUES[i]] = nil end
  act.moved, act.timed = 0, 0 -- what time alone has moved in this act, and the work that it was
  act.granted = 0 -- waiting acquires that it has given units
  act.meta = hash(keys.meta)
end

-- The instant of this act, or nil when the namespace was never opened, its data is gone, a migration is under way, or a newer version
-- has migrated it: this version would write what that one does not read.
function acts.begin(clock)
  local instant = acts.begin_migration(clock)
  if not instant or get(act.meta, "migrating") or number(act.meta, "schema") > SCHEMA then return nil end
  return instant
end

-- Why there is no instant.
function acts.closed()
  local schema = number(act.meta, "schema")
  if schema and schema > SCHEMA then return {answer = "too_new", schema = schema} end
  return {answer = "uninitialised"}
end

function acts.begin_migration(clock)
  if not whole(keys.meta) then return nil end
  local unfinished = get(act.meta, "unfinished")
  if unfinished then
    for _, left in ipairs(cmsgpack.unpack(unfinished)) do pcall(call, unpack(left)) end
    call("HDEL", keys.meta, "unfinished")
    act.meta.whole, act.meta.known = nil, {}
    whole(keys.meta)
  end
  if not get(act.meta, "schema") then return nil end
  act.micros = clock ~= "" and clock * 1000 or epochs.micros_now()
  act.instant = math.floor(act.micros / 1000)
  tiers.follow_policy()
  return act.instant
end

local function read_policy(text)
  return text ~= "" and cmsgpack.unpack(text) or NONE
end

-- A number of the policy, which only configure changes.
function setting(name)
  local policy = act.policy
  if not policy then
    policy = memo.of("policy", get(act.meta, "policy") or "", read_policy)
    act.policy = policy
  end
  return policy[name]
end

-- Writes the policy of the namespace; without `govern` existing numbers stay. An older version wrote each number as a field of meta.
function acts.set_policy(given, govern)
  local text = get(act.meta, "policy")
  local policy, changes = text and cmsgpack.unpack(text) or {}, false
  for name, value in pairs(given) do
    local before = policy[name] or number(act.meta, name)
    local after = not govern and before or value
    if policy[name] ~= after then policy[name], changes = after, true end
    if not text then put(act.meta, name, nil) end
  end
  if changes then put(act.meta, "policy", cmsgpack.pack(policy)) end
  act.policy, act.tiers = policy, nil
end

-- The next number of a counter in meta, or the first of the next `count`.
function next_number(counter, count)
  local last = act.counters[counter] or number(act.meta, counter) or 0
  act.counters[counter] = last + (count or 1)
  return last + 1
end

-- Its numbers continue above this one.
function acts.raise_number(counter, least)
  act.counters[counter] = math.max(act.counters[counter] or number(act.meta, counter) or 0, least)
end

-- Larger than all before, and no less than the time: a replica that took over without the latest claims must not give their fences
-- a second time.
function next_fence()
  local last = act.counters.fence or number(act.meta, "fence") or 0
  act.counters.fence = math.max(last + 1, act.micros + (number(act.meta, "fence_lead") or 0))
  return act.counters.fence
end

-- Something will change by time alone then: nothing is due before.
function alarm_at(instant)
  local alarm = number(act.meta, "alarm")
  if alarm and instant >= alarm then return false end
  put(act.meta, "alarm", instant)
  return true
end

-- Something can start then: a waiting worker has to know, because nothing wakes it at that time.
function start_at(instant)
  if alarm_at(instant) then act.announce_alarm = true end
end

-- Hashes and sets come last: what is written before may still change them.
function commit()
  limits.end_groups()
  retention.make_room()
  endings.write()
  events.write()
  metrics.write()
  fair_share.write()
  for counter, value in pairs(act.counters) do put(act.meta, counter, value) end
  sets.write()
  epochs.beat()
  hashes.write()
  listing.write()
  retention.write()
  unit.flush()
  act.is_committed = true
  audiences.keep_changes()
end
