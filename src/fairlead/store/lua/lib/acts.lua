-- The beginning and the end of every act: its state, its instant, its policy, its counters, its commit.

local hash, whole, get, number, put = hashes.hash, hashes.whole, hashes.get, hashes.number, hashes.put

-- An act uses a few of its tables. Those that the last one left empty serve again: making them all anew would take longer than
-- many an act.
local function unused(left)
  return left and next(left) == nil and left or {}
end

-- All that an act knows. Nothing is carried over from one call to the next.
function acts.new()
  local last = act or NONE
  act = {
    writes = unused(last.writes), texts = unused(last.texts), -- commands for the commit; texts of numbers, the same few are written for each task of a batch
    hash_views = unused(last.hash_views), changed_hashes = unused(last.changed_hashes), ordered_views = unused(last.ordered_views), changed_sets = unused(last.changed_sets),
    policy = nil, standing = nil, counters = unused(last.counters), -- read from and counted on in meta
    instant = nil, micros = nil, -- of this act: ms, and microseconds as far as they are known
    tell_time = false, -- a waiting worker has to learn of the alarm
    overdue = nil, -- the best base priority of the delayed tasks that are due but did not fit into this act
    book = nil, changes_book = false, -- profiles and audiences
    migrates = false,
    limit_views = unused(last.limit_views), touched_limits = unused(last.touched_limits), touched_lots = unused(last.touched_lots), needs_cache = unused(last.needs_cache),
    sub_parts = unused(last.sub_parts), sub_names = unused(last.sub_names), route_names = unused(last.route_names), owners = unused(last.owners), kinds = unused(last.kinds),
    freed = unused(last.freed), -- limit -> units that got free in this act: as many idle workers are worth waking
    room_changed = unused(last.room_changed), -- limits whose waiters are looked at before it ends
    asker = nil, looks_again = unused(last.looks_again), -- the acquire that asks; waiters that ask again by themselves
    asks_again = nil, -- the profile of a claim that was not given all it wanted
    left_limits = unused(last.left_limits), -- limits that a task or a lease let go of: some end with it
    touched_subs = unused(last.touched_subs), ages = unused(last.ages),
    entered_subs = unused(last.entered_subs), -- sub-queue -> tasks that entered it in this act
    idlers = unused(last.idlers), idlers_read = unused(last.idlers_read), -- idle line -> workers found in it
    ledgers = unused(last.ledgers), known_types = unused(last.known_types), submitted_keys = unused(last.submitted_keys), new_kinds = unused(last.new_kinds),
    newly_finished = unused(last.newly_finished), newly_dead = unused(last.newly_dead), newly_dead_jobs = unused(last.newly_dead_jobs), -- entries that this act adds to the lists of what has ended
    newly_dead_of = unused(last.newly_dead_of), -- tenants of such tasks
    finished_totals = nil, -- {count, bytes} of all that have finished, with those of this act
    unlinked = unused(last.unlinked), -- keys of what goes: the last that the act does
    lost = unused(last.lost), -- worker -> was it alone with a task, or in company?
    dropped = unused(last.dropped), -- worker -> {all, not_high}: its tasks whose leases ended in this act
    events = unused(last.events), told = unused(last.told), ended = unused(last.ended), ended_key = nil,
    hand_over = nil, find_taker = nil, hand_straight = nil, -- how a waiting worker is given a task, in acts that do
  }
  act.meta = hash(keys.meta)
end

-- The instant of this act, or nil when the namespace was never opened, its data is gone, or it is being migrated.
function acts.begin(clock)
  local instant = acts.begin_migration(clock)
  return not get(act.meta, "migrating") and instant or nil
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
  if clock ~= "" then
    act.instant = tonumber(clock)
    act.micros = act.instant * 1000
  else
    local told = call("TIME")
    act.micros = told[1] * 1000000 + told[2]
    act.instant = math.floor(act.micros / 1000)
  end
  return act.instant
end

-- What the texts of policies say. A text always says the same, so this alone may outlive an act.
local policies, policies_kept = {}, 0
local MOST_POLICIES = 64 -- of as many namespaces

local function read_policy(text)
  local policy = policies[text]
  if not policy then
    if policies_kept == MOST_POLICIES then policies, policies_kept = {}, 0 end
    policy = text ~= "" and cmsgpack.unpack(text) or NONE
    policies[text], policies_kept = policy, policies_kept + 1
  end
  return policy
end

-- A number of the policy, which no act but configure changes.
function acts.setting(name)
  local policy = act.policy
  if not policy then
    policy = read_policy(get(act.meta, "policy") or "")
    act.policy = policy
  end
  return policy[name]
end

-- Writes the policy of the namespace; without `govern` a number that is there stays. An older version wrote each number as a
-- field of meta.
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
  act.policy = policy
end

-- The next number of a counter in meta, or the first of the next `count`.
function acts.next_number(counter, count)
  local last = act.counters[counter] or number(act.meta, counter) or 0
  act.counters[counter] = last + (count or 1)
  return last + 1
end

-- Larger than all before, and no less than the time: a replica that took over without the latest claims must not give their fences
-- a second time.
function acts.next_fence()
  local last = act.counters.fence or number(act.meta, "fence") or 0
  act.counters.fence = math.max(last + 1, act.micros)
  return act.counters.fence
end

-- Something will change by time alone then: nobody needs to look for it before.
function acts.alarm_at(instant)
  local alarm = number(act.meta, "alarm")
  if alarm and instant >= alarm then return false end
  put(act.meta, "alarm", instant)
  return true
end

-- Something can start then: a worker that waits has to know, because nothing wakes it when that time comes.
function acts.start_at(instant)
  if acts.alarm_at(instant) then act.tell_time = true end
end

-- Hashes and sets come last: what is written before may still change them.
function acts.commit()
  limits.end_groups()
  retention.make_room()
  endings.write()
  events.write()
  fair_share.write()
  for counter, value in pairs(act.counters) do put(act.meta, counter, value) end
  sets.write()
  hashes.write()
  retention.write()
  unit.flush()
end
