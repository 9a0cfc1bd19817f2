-- Return the workers that have fallen silent, each of them once. Those silent for an hour are forgotten; their records expire. Their
-- tasks are freed when the leases end: until then a worker that is only cut off may run them.
--
-- ARGV     clock
-- RETURNS  ok workers {id seen running}... | uninitialised
-- FLAGS    allow-oom

local HOUR, AT_ONCE = 3600000, 128

local function bury(id, seen)
  local running, record = call("ZCARD", keys.running(id)), workers.record(id)
  if record then running = running + (number(record, "lost_runs") or 0) end -- their leases ended before this report
  local called = record and get(record, "called")
  if record then
    workers.not_idle(record)
    profiles.unlist(record)
    put(record, "called", nil)
  else
    workers.forget_lost(id)
  end
  metrics.worker_lost()
  if called then waking.pass_on() end -- it will not respond to the call
  return {id = id, seen = tonumber(seen), running = running}
end

-- The last sign of a worker only gets later, so all workers before the mark were named.
local mark, silent = number(act.meta, "buried") or 0, now - setting("worker_ttl")
-- Up to AT_ONCE, but all of an instant or none: {worker, seen, ...}, and the new mark.
local function fallen_silent()
  local found = call("ZRANGEBYSCORE", keys.workers, int(mark), "(" .. int(silent), "WITHSCORES", "LIMIT", 0, AT_ONCE + 1)
  if #found <= 2 * AT_ONCE then return found, silent end
  local last = found[#found]
  local complete = call("ZRANGEBYSCORE", keys.workers, int(mark), "(" .. last, "WITHSCORES")
  if #complete > 0 then return complete, tonumber(last) end
  return call("ZRANGEBYSCORE", keys.workers, last, last, "WITHSCORES"), last + 1 -- all fell silent in one millisecond
end

put(act.meta, "buried_at", now)
local lost = {}
if mark < silent then
  local found, upto = fallen_silent()
  for i = 1, #found, 2 do lost[#lost + 1] = bury(found[i], found[i + 1]) end
  if #found > 0 then put(act.meta, "buried", upto) end
end
local named = number(act.meta, "buried") or 0 -- later ones are still to be named, however long ago they were seen
write({"ZREMRANGEBYSCORE", keys.workers, "-inf", "(" .. int(math.min(now - HOUR, named))})
tidying.tidy(now)
waking.reindex_and_commit()
return {answer = "ok", workers = lost}
