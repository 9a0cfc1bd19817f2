-- Rebuild a namespace that the server has lost, or has an older state of, from records of the past, step by step. It stays closed to
-- everybody until the last step. `token` names one restore: a later one takes over when it has been silent for a while.
--
--   begin    close it: {found (epoch), reason, schema, policy, beat, fence, made, position (recorded events), started = {{place tag}...}}
--   define   limits, API keys and so on as they were, unless they are there: {{kind name fields}...}
--   audit    the latest entries, the oldest first: {{id seq entry hash}...}
--   jobs     {{id fields}...}, the oldest first, like tasks
--   tasks    {{id fields ended? (what the job of a step says)}...}
--   settle   jobs and their steps agree: {{id done = {{step type result ran finished}...}}...}
--   keys     idempotency keys of what has ended: {{key digest id created state priority}...}
--   end      open it: {hold (ms)}
--
-- ARGV     token step given clock
-- RETURNS  ok reason? after? (the last event that the server has) rows? {state before? unknown?}... again? (steps that are queued again)
--          opens_at? (ms) now | changed | busy | superseded | uninitialised
-- FLAGS    allow-oom
-- GUARD    off

local SILENT, AHEAD = 10000, 60000000 -- ms; microseconds by which fences continue above those that are known
local what, wall = cmsgpack.unpack(given), math.floor(epochs.micros_now() / 1000)

-- What was recorded leaves the outbox: after the restore events are numbered in a new epoch.
local function trim_outbox(position)
  local recorded = math.min(position, number(act.meta, "events") or 0)
  if recorded <= (number(act.meta, "events_gone") or 0) then return end
  put(act.meta, "events_gone", recorded)
  write({"XTRIM", keys.events, "MINID", int(recorded + 1)})
end

local function begin()
  local by, is_empty = get(act.meta, "restoring"), not get(act.meta, "schema")
  if by and by ~= token and number(act.meta, "restoring_at") > wall - SILENT then return {answer = "busy"} end
  if not by and (get(act.meta, "epoch") or "") ~= what.found then return {answer = "changed"} end
  put(act.meta, "restoring", token)
  put(act.meta, "restoring_at", wall)
  put(act.meta, "restored_after", get(act.meta, "restored_after") or number(act.meta, "events") or 0)
  put(act.meta, "sealed", get(act.meta, "sealed") or what.reason)
  put(act.meta, "sealed_at", get(act.meta, "sealed_at") or wall)
  if is_empty then put(act.meta, "schema", what.schema) end
  acts.set_policy(what.policy, false)
  put(act.meta, "beat", math.max(number(act.meta, "beat") or 0, what.beat))
  put(act.meta, "fence", math.max(number(act.meta, "fence") or 0, what.fence + AHEAD))
  put(act.meta, "made", math.max(number(act.meta, "made") or 0, what.made))
  put(act.meta, "alarm", 0)
  trim_outbox(what.position)
  for _, one in ipairs(what.started) do fair_share.started(one[1], one[2]) end
  fair_share.write()
  hashes.write()
  unit.flush()
  return {answer = "ok", now = clock ~= "" and tonumber(clock) or wall, reason = get(act.meta, "sealed"), after = number(act.meta, "restored_after")}
end

local function define_limit(name, fields)
  if limits.of(name) then return end
  local view = act.limit_views[name]
  for field, value in pairs(fields) do put(view, field, value) end
  add(ordered(keys.limits), name, 0)
end

local function define_hash(name, fields)
  local view, count = whole(keys[name]) or hash(keys[name]), 0
  for field, value in pairs(fields) do
    if not get(view, field) then put(view, field, value) end
  end
  for _, value in pairs(view.known) do count = count + (value and 1 or 0) end
  if name == "paused" then put(act.meta, "paused_types", count > 0 and count or nil) end
end

local function define_key(id, fields)
  if access.record(id) then return end
  for field, value in pairs(fields) do put(hash(keys.key(id)), field, value) end
  access.key_ends(id, tonumber(fields.expires))
end

local function define_set(name, scores)
  for member, score in pairs(scores) do
    if not call("ZSCORE", keys[name], member) then add(ordered(keys[name]), member, score) end
  end
end

local DEFINE = {limits = define_limit, hashes = define_hash, keys = define_key, sets = define_set}

local function add_audit()
  local last = call("XREVRANGE", keys.audit, "+", "-", "COUNT", 1)[1]
  local at, number_at = string.match(last and last[1] or "0-0", "^(%d+)-(%d+)$")
  for _, one in ipairs(what) do
    local its, its_number = string.match(one.id, "^(%d+)-(%d+)$")
    if tonumber(its) > tonumber(at) or its == at and tonumber(its_number) > tonumber(number_at) then
      write({"XADD", keys.audit, one.id, "entry", one.entry, "hash", one.hash})
      acts.raise_number("audited", one.seq)
    end
  end
end

local function remember_keys()
  for _, one in ipairs(what) do
    if not idempotency.find(one.key) then
      idempotency.restore(one.key, one.digest, one.id, one.created)
      idempotency.note_end(one.key, one.id, one.state, one.priority, one.priority)
    end
  end
end

local function open_again()
  for _, place in ipairs(choice.PLACES) do fair_share.begin_at_head(place) end
  local opens_at = number(act.meta, "sealed_at") + what.hold
  epochs.begin("restored", token)
  epochs.raise_fence()
  for _, field in ipairs({"sealed", "sealed_at", "restoring", "restoring_at", "restored_after"}) do put(act.meta, field, nil) end
  put(act.meta, "opens_at", opens_at > wall and opens_at or nil)
  return math.max(opens_at, wall)
end

if step == "begin" then
  whole(keys.meta)
  return begin()
end
local now, answer = acts.begin_migration(clock), {answer = "ok", now = wall, rows = {}}
if not now then return {answer = "uninitialised"} end
if get(act.meta, "restoring") ~= token then return {answer = "superseded"} end
put(act.meta, "restoring_at", wall)
if step == "define" then
  for _, one in ipairs(what) do DEFINE[one.kind](one.name, one.fields) end
elseif step == "audit" then
  add_audit()
elseif step == "jobs" then
  for i, one in ipairs(what) do answer.rows[i] = restoring_jobs.job(one.id, one.fields, now) end
elseif step == "tasks" then
  for i, one in ipairs(what) do answer.rows[i] = restoring.task(one.id, one.fields, one.ended, now) end
elseif step == "settle" then
  answer.again = 0
  for _, one in ipairs(what) do answer.again = answer.again + restoring_jobs.settle(one.id, one.done, now) end
elseif step == "keys" then
  remember_keys()
elseif step == "end" then
  answer.opens_at = open_again()
end
queues.reindex()
act.entered_subs = {} -- no worker is woken before it is open
waking.reindex_and_commit()
return answer
