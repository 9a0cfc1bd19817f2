-- Take units of a limit without a task, if they are free now.
--
-- KEYS     meta
-- ARGV     limit units lease id holder clock
-- RETURNS  ok <fence> <until> | limit_full <instant or ""> | unknown_limit | too_many_units <most> | conflict | uninitialised
-- USES     time overlap waking

local now = begin(clock)
if not now then return {"uninitialised"} end
local wanted = limit_of(limit)
if not wanted then return {"unknown_limit"} end
local count = tonumber(units)
local is_rate = get(wanted, "kind") == "rate"

-- The reply to this very request was lost: the lease is there.
local known = bare_lease(id)
if known and (get(known, "limit") ~= limit or number(known, "units") ~= count) then return {"conflict"} end
if known then return {"ok", get(known, "fence"), get(known, "until")} end

local most = number(wanted, is_rate and "burst" or "limit")
if most > 0 and count > most then return {"too_many_units", int(most)} end
advance(now) -- nobody else may be there to notice that a lease ran out
settle()
if room(wanted, 2, false) < count then
  settle_and_commit()
  return {"limit_full", is_rate and not get(wanted, "paused") and int(refilled_at(wanted, count)) or ""}
end

remember_company(limit, {}, nil)
take_units("lease:" .. id, needs(limit .. "=" .. int(count)))
local made, fence, instant = hash(lease_key(id)), next_number("fence"), now + tonumber(lease)
local fields = {limit = limit, units = count, fence = fence, holder = holder, ["until"] = instant}
for field, value in pairs(fields) do put(made, field, value) end
lease_until("lease:" .. id, instant)
settle_and_commit()
return {"ok", int(fence), int(instant)}
