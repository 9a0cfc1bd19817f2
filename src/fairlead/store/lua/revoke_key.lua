-- End an API key, at once and for good.
--
-- ARGV     id clock
-- RETURNS  ok | key_unknown | uninitialised
-- FLAGS    allow-oom

local record = access.record(id)
if not record then return {answer = "key_unknown"} end
if not get(record, "revoked") then
  put(record, "revoked", now)
  access.key_ends(id, math.min(now, number(record, "expires") or access.NEVER))
  commit()
end
return {answer = "ok"}
