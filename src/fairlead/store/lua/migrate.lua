-- Bring a namespace of an older schema to schema 6, step by step; any process that opens it may do any step. No other act runs meanwhile.
--
--   begin    set the indexes of schema 1 and 2 aside: {drop = {key...}, jobs_open = count, policy = {name = number}}
--   tasks    queue up to 200 of the waiting tasks again, each at its old tag and number
--   workers  list these workers: {id...}
--   ended    list which of these records have ended: {tasks = {id...}, jobs = {id...}}
--   tenants  list where these tasks are for their tenants: {id...}
--   lists    list these tasks and jobs, in this order, and let jobs know their steps: {tasks = {id...}, jobs = {id...}}
--   holders  set the holders of this limit apart: name
--   tiers    list the lots of these tiers together, and watch these sub-queues no longer: {limits = {name...}, subs = {sub...}}
--   end      all steps are done
--
-- ARGV     step given clock
-- RETURNS  ok more (is to be done) | uninitialised
-- FLAGS    allow-oom
-- GUARD    epoch

local AT_ONCE, FIELDS_AT_ONCE = 200, 1000
local now = acts.begin_migration(clock)
if not now then return {answer = "uninitialised"} end

local function set_aside(key, as)
  if call("EXISTS", key) == 1 then write({"RENAME", key, keys.migrating(as)}) end
end

local function begin(what)
  local schema = number(act.meta, "schema")
  put(act.meta, "schema", SCHEMA)
  put(act.meta, "migrating", 1)
  declarations.note_older()
  if schema >= 3 then return end -- its indexes are the current ones, except for lists
  if schema == 1 then write({"UNLINK", keys.events}) end -- its entries had another form
  for _, place in ipairs(choice.PLACES) do set_aside(keys.age(place), place) end
  set_aside(keys.prefix .. "delayed", "delayed")
  local drop = {"UNLINK", keys.home}
  for _, key in ipairs(what.drop) do drop[#drop + 1] = keys.prefix .. key end
  write_many(drop, 1)
  for _, name in ipairs(call("ZRANGE", keys.limits, 0, -1)) do
    write({"HDEL", keys.limit(name), "hold", "hold_units"})
    if call("HEXISTS", keys.limit(name), "declared:file") == 1 then add(ordered(keys.declared), name, 0) end
  end
  acts.set_policy(what.policy, false)
  put(act.meta, "jobs_open", what.jobs_open > 0 and what.jobs_open or nil)
end

local function delay_again(t)
  local seq, instant = next_number("seq"), number(t, "run_at")
  put(t, "seq", seq)
  add(ordered(keys.delayed(t.known.facts.priority)), names.member(seq, t.id), instant)
  remove(ordered(keys.waits), t.id) -- it begins to wait when it is queued
  presence.enter(t, presence.DELAYED, instant)
  backlog.count(t, 1)
  alarm_at(instant)
end

local function queue_again(list, as)
  for _, id in ipairs(list) do
    local t = records.find(id)
    local state = t and get(t, "state")
    if state == "queued" then
      get(t, "arrival")
      queues.enqueue(t, get(t, "place"), number(t, "tag"), number(t, "seq"))
    elseif state == "delayed" then
      delay_again(t)
    end
    remove(ordered(keys.migrating(as)), id)
  end
end

local function tasks()
  for _, as in ipairs({"0n", "0p", "1n", "1p", "2n", "delayed"}) do
    local list = call("ZRANGE", keys.migrating(as), 0, AT_ONCE - 1)
    if #list > 0 then
      queue_again(list, as)
      return true
    end
  end
  return false
end

local function list_worker(id)
  local worker = workers.record(id)
  if not worker or get(worker, "profile") then return end
  local waits = get(worker, "idle")
  put(worker, "idle", nil)
  if get(worker, "state") ~= "active" or now - number(worker, "seen") > setting("worker_ttl") then return end
  profiles.list(worker)
  if waits then workers.set_idle(worker, true, get(worker, "takes"), now) end
end

local function list_ended(found)
  act.migrates = true
  for _, id in ipairs(found.tasks) do
    local t = records.find(id)
    local state = t and get(t, "state")
    if (state == "completed" or state == "cancelled") and not get(t, "stopping") then retention.keep_task(t) end
    if state == "failed" or state == "dead_letter" then retention.list_for_tenant(t) end
  end
  for _, id in ipairs(found.jobs) do
    local job = jobs.record(id)
    local status = job and get(job, "status")
    if status == "FAILED" then retention.keep_dead_job(job) end
    if status == "COMPLETED" or status == "CANCELLED" then retention.keep_job(job) end
  end
end

local function list_for_tenant(t)
  local state = get(t, "state")
  if state == "executing" or get(t, "stopping") then
    presence.enter(t, presence.HELD, number(t, "started"))
  elseif state == "queued" then
    presence.enter(t, get(t, "place"), number(t, "arrival"))
  elseif state == "delayed" then
    presence.enter(t, presence.DELAYED, number(t, "run_at"))
  end
end

local function list_in_order(found)
  for _, id in ipairs(found.tasks) do
    local t = records.find(id)
    if t then
      records.list(t)
      jobs.know_step(t)
    end
  end
  for _, id in ipairs(found.jobs) do
    local job = hash(keys.job(id))
    if get(job, "status") and not get(job, "made") then put(job, "made", listing.append(keys.jobs, id)) end
  end
end

-- Up to schema 5 they were fields of the limit itself.
local function set_apart_holders(name)
  local limit, cursor, count = hash(keys.limit(name)), "0", 0
  repeat
    local page = call("HSCAN", keys.limit(name), cursor, "MATCH", "held:*", "COUNT", FIELDS_AT_ONCE)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      put(hash(keys.holders(name)), string.sub(page[2][i], #"held:" + 1), page[2][i + 1])
      put(limit, page[2][i], nil)
      count = count + 1
    end
  until count > 0 or cursor == "0"
  return count > 0
end

local function gather_tiers(found)
  for _, name in ipairs(found.limits) do
    for _, lot in ipairs(call("ZRANGE", keys.lots(name), 0, -1)) do add(ordered(keys.lots(names.TIERS)), lot, 0) end
    write({"UNLINK", keys.lots(name)})
  end
  for _, sub in ipairs(found.subs) do
    remove(ordered(keys.nested), sub)
    remove(ordered(keys.patience), sub)
    for _, need in ipairs(subs.needs(sub)) do change_count(limits.of(need.name), "sub_queues", -1) end
    change_count(act.meta, "wide_sub_queues", -1)
  end
end

local is_old = number(act.meta, "schema") < SCHEMA
if not is_old and not get(act.meta, "migrating") then return {answer = "ok", more = false} end -- another process was faster
local more = false
if step == "begin" and is_old then
  begin(cmsgpack.unpack(given))
elseif step == "tasks" then
  more = tasks()
elseif step == "workers" then
  for _, id in ipairs(cmsgpack.unpack(given)) do list_worker(id) end
elseif step == "ended" then
  list_ended(cmsgpack.unpack(given))
elseif step == "tenants" then
  for _, id in ipairs(cmsgpack.unpack(given)) do
    local t = records.find(id)
    if t then list_for_tenant(t) end
  end
elseif step == "lists" then
  list_in_order(cmsgpack.unpack(given))
elseif step == "holders" then
  more = set_apart_holders(cmsgpack.unpack(given))
elseif step == "tiers" then
  gather_tiers(cmsgpack.unpack(given))
elseif step == "end" and not tasks() then
  put(act.meta, "migrating", nil)
  put(act.meta, "alarm", 0)
end
queues.reindex()
act.entered_subs = {} -- no worker is woken before the migration is complete
waking.reindex_and_commit()
return {answer = "ok", more = more}
