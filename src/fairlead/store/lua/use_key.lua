-- Note that an API key is in use; once a minute is enough, whoever notes it.
--
-- KEYS     meta
-- ARGV     id clock
-- RETURNS  ok | key_unknown | uninitialised
-- USES     begin

local MINUTE = 60000
local now = begin(clock)
if not now then return {"uninitialised"} end
local record = whole(key_key(id))
if not record then return {"key_unknown"} end
if now - (number(record, "last_used") or 0) >= MINUTE then
  put(record, "last_used", now)
  commit()
end
return {"ok"}
