-- Note that an API key is in use, at most once a minute.
--
-- ARGV     id clock
-- RETURNS  ok | key_unknown | uninitialised
-- FLAGS    allow-oom

local MINUTE = 60000
local record = whole(keys.key(id))
if not record then return {answer = "key_unknown"} end
if now - (number(record, "last_used") or 0) >= MINUTE then
  put(record, "last_used", now)
  commit()
end
return {answer = "ok"}
