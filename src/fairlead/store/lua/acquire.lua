-- Take units of a limit without a task; with `wait` (ms), wait in line for them that long. A waiting caller repeats the request with the
-- same id when it is woken, and at least every five seconds; without `wait` it leaves the line.
--
-- ARGV     scope name units lease id holder wait priority account weight clock
-- RETURNS  ok fence ends | waiting ask_in? (ms) | limit_full free_at? | unknown_limit | invalid field code message | conflict
--          | uninitialised
-- FLAGS    allow-oom

local limit = tenants.limit_meant(scope, name)
local wanted = limits.of(limit)
if not wanted then return {answer = "unknown_limit"} end
local count, waits, class = tonumber(units), wait ~= "0", tonumber(priority)
local is_rate = get(wanted, "kind") == "rate"

-- The reply to this request was lost: the lease exists.
local known = leases.bare(id)
local asked = known or waiters.record(id)
if asked and (get(asked, "limit") ~= limit or number(asked, "units") ~= count) then return {answer = "conflict"} end
if known then return {answer = "ok", fence = number(known, "fence"), ends = number(known, "until")} end

local most = limits.size_of(wanted)
if most > 0 and count > most then return types.invalid("units", "too_many_units", limits.why_never(wanted, most, count)) end
act.asker = id
time.advance(now) -- there may be no other caller to notice that a lease ran out
queues.reindex()

local function full()
  metrics.rejected(wanted)
  waking.reindex_and_commit()
  return {answer = "limit_full", free_at = is_rate and not get(wanted, "paused") and rates.refilled_at(wanted, count) or nil}
end

local function new_record()
  local record = hash(keys.lease(id))
  record.id = id
  for field, value in pairs({limit = limit, units = count, holder = holder}) do put(record, field, value) end
  return record
end

local waiter = waiters.record(id)
if not waiter and acquiring.may_take(wanted, class, count, waits) then
  waiter = new_record()
  acquiring.begin_lease(id, waiter, tonumber(lease))
elseif not waiter then
  if not waits or (number(wanted, "waiters") or 0) >= waiters.MOST then return full() end
  waiter = new_record()
  waiters.enter(waiter, int(class) .. "n", account, tonumber(weight), tonumber(lease))
end

local function is_waiting() return get(waiter, "state") == "waiting" end

if is_waiting() then
  acquiring.look_at(limit)
  if waits then waiters.stay(waiter, tonumber(wait)) end
  acquiring.grant_freed()
  if is_waiting() and not waits then
    waiters.withdraw(waiter)
    return full()
  end
end
waking.reindex_and_commit()
if is_waiting() then return {answer = "waiting", ask_in = acquiring.ask_in(waiter)} end
return {answer = "ok", fence = number(waiter, "fence"), ends = number(waiter, "until")}
