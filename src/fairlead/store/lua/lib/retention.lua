-- Ended tasks and jobs are kept for a time, and no more of them than the policy allows: the oldest go first.
--
-- Completed and cancelled tasks and jobs are in `finished` as "<bytes>:<task or job>:<id>", by when they ended. Failed and dead-lettered
-- tasks are in `dead`, and those of a tenant in its `deadof`, failed jobs in `deadjobs`, by their ids.

local RECORD = 700 -- bytes of a record besides its content
local LEAST_TTL = 60000 -- in a namespace that was opened before there was such a setting
local MORE = 4 -- an act may drop this many more than have ended in it, to catch up after a bound was lowered

-- The totals of `finished`; written once, at the end of the act.
local function totals()
  local both = act.finished_totals
  if not both then
    both = {count = number(act.meta, "finished_count") or 0, bytes = number(act.meta, "finished_bytes") or 0}
    act.finished_totals = both
  end
  return both
end

local function count(entries, bytes)
  local both = totals()
  both.count, both.bytes = both.count + entries, both.bytes + bytes
end

local function keep(kind, id, ended, size)
  local entry = int(RECORD + size) .. ":" .. kind .. ":" .. id
  if act.migrates and call("ZSCORE", keys.finished, entry) then return end -- another process was faster
  insert(ordered(keys.finished), entry, ended)
  act.newly_finished[#act.newly_finished + 1] = entry
  count(1, RECORD + size)
end

-- Of the chunks that are kept, by the mean size of all chunks.
local function output_size(t)
  local emitted = number(t, "emitted")
  if not emitted then return 0 end
  return math.floor((number(t, "emitted_bytes") or 0) * math.min(1, events.MOST_CHUNKS / emitted))
end

-- A task that has ended and that no worker holds.
function retention.keep_task(t)
  local result = t.known.result
  keep("task", t.id, number(t, "finished"), records.size_of(t) + #(result or "") + output_size(t))
end

function retention.keep_job(job)
  keep("job", job.id, number(job, "finished"), jobs.size_of(job))
end

-- A tenant finds its own failed tasks among any number of others. An expired record no longer says whose it was: entries whose time is
-- over are removed when others come, and the whole list expires with the last one.
function retention.list_for_tenant(t)
  local tenant = t.known.facts.tenant
  if not tenant then return end
  local set = ordered(keys.deadof(tenant))
  for _, id in ipairs(up_to(set, act.instant - setting("dead_ttl"), MORE)) do remove(set, id) end
  add(set, t.id, number(t, "finished"))
  act.newly_dead_of[tenant] = true
end

function retention.keep_dead(t)
  add(ordered(keys.dead), t.id, number(t, "finished"))
  act.newly_dead[#act.newly_dead + 1] = t.id
  retention.list_for_tenant(t)
end

local function leave_tenant(t)
  if t.known.facts.tenant then remove(ordered(keys.deadof(t.known.facts.tenant)), t.id) end
end

-- It is replayed, or purged.
function retention.unlist_dead(t)
  remove(ordered(keys.dead), t.id)
  leave_tenant(t)
end

function retention.keep_dead_job(job)
  add(ordered(keys.deadjobs), job.id, number(job, "finished"))
  act.newly_dead_jobs[#act.newly_dead_jobs + 1] = job.id
end

-- Deletes its record, unless it has changed: the id may have been used again, or the task replayed.
local function unlink(kind, id, ended)
  local record = load_fields(hash(keys[kind](id)), {"finished", "facts", "made"})
  if number(record, "finished") ~= ended then return end
  act.unlinked[#act.unlinked + 1] = record.key
  if kind == "task" then act.unlinked[#act.unlinked + 1] = keys.output(id) end
  unpack_field(record, "facts")
  listing.remove(keys[kind .. "s"], (record.known.facts or NONE).made or get(record, "made"))
end

local function leave_index(entry)
  remove(ordered(keys.finished), entry)
  count(-1, -tonumber(string.match(entry, "^%d+")))
end

local function drop_finished(entry, ended)
  leave_index(entry)
  local kind, id = string.match(entry, "^%d+:(%a+):(.*)$")
  unlink(kind, id, ended)
end

local function bound(name) return setting(name) or math.huge end

-- Must a task that ended then be dropped? When memory is short, the caller has had a while to read its result.
local function too_many_finished(ended)
  local both, room = totals(), memory.pressed()
  if both.count > bound("max_finished") or both.bytes > bound("max_finished_bytes") then return true end
  return room and both.bytes > room and ended <= act.instant - (setting("least_ttl") or LEAST_TTL)
end

-- Drops up to `most` of the oldest while there are too many: stored ones, then those of this act. Returns how many.
local function drop_oldest(set, own, most, too_many, drop)
  local dropped, stored = 0, too_many(-math.huge) and call("ZRANGE", set.key, 0, most - 1, "WITHSCORES") or NONE
  local function drop_one(member, score)
    if dropped >= most or set.removed[member] and not set.added[member] or not too_many(tonumber(score)) then return end
    drop(member, tonumber(score))
    dropped = dropped + 1
  end
  for i = 1, #stored, 2 do drop_one(stored[i], stored[i + 1]) end
  for _, member in ipairs(own) do drop_one(member, set.added[member]) end
  return dropped
end

local function drop_dead(key, kind, own, most)
  local set = ordered(key)
  local left = call("ZCARD", key) + #own
  local function drop(id, ended)
    remove(set, id)
    local t = kind == "task" and records.find(id)
    if t then leave_tenant(t) end
    unlink(kind, id, ended)
    left = left - 1
  end
  return drop_oldest(set, own, most, function() return left > bound("max_dead") end, drop)
end

-- Drops what exceeds the bounds, at most `most` of each kind. Returns the largest count of a kind.
function retention.drop(most)
  return math.max(
    drop_oldest(ordered(keys.finished), NONE, most, too_many_finished, drop_finished),
    drop_dead(keys.dead, "task", NONE, most), drop_dead(keys.deadjobs, "job", NONE, most)
  )
end

-- The same, at the end of an act in which something has ended.
function retention.make_room()
  local finished, dead, dead_jobs = act.newly_finished, act.newly_dead, act.newly_dead_jobs
  if #finished > 0 then drop_oldest(ordered(keys.finished), finished, #finished + MORE, too_many_finished, drop_finished) end
  if #dead > 0 then drop_dead(keys.dead, "task", dead, #dead + MORE) end
  if #dead_jobs > 0 then drop_dead(keys.deadjobs, "job", dead_jobs, #dead_jobs + MORE) end
  if act.finished_totals then
    put(act.meta, "finished_count", act.finished_totals.count)
    put(act.meta, "finished_bytes", act.finished_totals.bytes)
  end
end

-- Up to which instant the history has all that has ended; nil: there is none.
local function recorded_until(now)
  local recorded = number(act.meta, "recorded")
  if not recorded then return nil end
  local next_event = call("XRANGE", keys.events, int(recorded + 1), "+", "COUNT", 1)[1]
  return next_event and cmsgpack.unpack(next_event[2][2])[1][5] - 1 or now
end

-- Drops what the history has, too, and what ended long enough ago. Returns how many.
local function drop_recorded(now, most)
  local recorded, live_ttl = recorded_until(now), setting("live_ttl") -- nil in a namespace that is older than this setting
  if not recorded or not live_ttl then return 0 end
  local upto = math.min(recorded, now - live_ttl)
  return drop_oldest(ordered(keys.finished), NONE, most, function(ended) return ended <= upto end, drop_finished)
end

-- Removes expired entries from the lists, up to `most` of each kind. Returns the largest count of a kind.
function retention.pass(now, most)
  local dropped = drop_recorded(now, most)
  local finished = up_to(ordered(keys.finished), now - setting("finished_ttl"), most)
  for _, entry in ipairs(finished) do leave_index(entry) end
  local passed = math.max(dropped, #finished)
  for _, key in ipairs({keys.dead, keys.deadjobs}) do
    local over = up_to(ordered(key), now - setting("dead_ttl"), most)
    for _, id in ipairs(over) do remove(ordered(key), id) end
    passed = math.max(passed, #over)
  end
  return passed
end

-- At the very end of the act, which may have changed these keys.
function retention.write()
  for tenant in pairs(act.newly_dead_of) do write({"PEXPIRE", keys.deadof(tenant), setting("dead_ttl")}) end
  local gone = act.unlinked
  for from = 1, #gone, 200 do write({"UNLINK", unpack(gone, from, math.min(from + 199, #gone))}) end
end
