-- Take units of a limit without a task, if they are free now.
--
-- ARGV     limit units lease id holder clock
-- RETURNS  ok <fence> <until> | limit_full <instant or ""> | unknown_limit | too_many_units <most> | conflict | uninitialised

local int = unit.int
local hash, get, number, put = hashes.hash, hashes.get, hashes.number, hashes.put
local next_fence, begin = acts.next_fence, acts.begin

local now = begin(clock)
if not now then return {"uninitialised"} end
local wanted = limits.of(limit)
if not wanted then return {"unknown_limit"} end
local count = tonumber(units)
local is_rate = get(wanted, "kind") == "rate"

-- The reply to this very request was lost: the lease is there.
local known = leases.bare(id)
if known and (get(known, "limit") ~= limit or number(known, "units") ~= count) then return {"conflict"} end
if known then return {"ok", get(known, "fence"), get(known, "until")} end

local most = number(wanted, is_rate and "burst" or "limit")
if most > 0 and count > most then return {"too_many_units", int(most)} end
time.advance(now) -- nobody else may be there to notice that a lease ran out
queues.settle()
if limits.room(wanted, 2, false) < count then
  waking.settle_and_commit()
  return {"limit_full", is_rate and not get(wanted, "paused") and int(rates.refilled_at(wanted, count)) or ""}
end

overlap.remember_company(limit, {}, nil)
limits.take("lease:" .. id, limits.needs(limit .. "=" .. int(count)))
local made, fence, instant = hash(keys.lease(id)), next_fence(), now + tonumber(lease)
local fields = {limit = limit, units = count, fence = fence, holder = holder, ["until"] = instant}
for field, value in pairs(fields) do put(made, field, value) end
leases.lease_until("lease:" .. id, instant)
waking.settle_and_commit()
return {"ok", int(fence), int(instant)}
