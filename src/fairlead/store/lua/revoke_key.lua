-- End an API key, at once and for good.
--
-- KEYS     meta
-- ARGV     id clock
-- RETURNS  ok | key_unknown | uninitialised
-- FLAGS    allow-oom
-- USES     access

local now = begin(clock)
if not now then return {"uninitialised"} end
local record = key_record(id)
if not record then return {"key_unknown"} end
if not get(record, "revoked") then
  put(record, "revoked", now)
  key_ends(id, math.min(now, number(record, "expires") or NEVER))
  commit()
end
return {"ok"}
