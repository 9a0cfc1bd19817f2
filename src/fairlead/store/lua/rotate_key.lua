-- Create a key with the rights of another one, which ends after the overlap, if not before.
--
-- ARGV     id digest old overlap_ms clock
-- RETURNS  ok now fields | taken | key_unknown | key_ended | uninitialised
-- FLAGS    allow-oom

local before = access.record(old)
if not before then return {answer = "key_unknown"} end
local expires = number(before, "expires") or access.NEVER
if get(before, "revoked") or expires <= now then return {answer = "key_ended"} end
if access.record(id) then return {answer = "taken"} end

local ends = math.min(expires, now + tonumber(overlap_ms))
put(before, "expires", ends)
access.key_ends(old, ends)
local made = access.issue(id, {
  digest = digest, replaces = old, name = get(before, "name"), scopes = get(before, "scopes"), tenant = get(before, "tenant"),
  lifetime = number(before, "lifetime"), interval = get(before, "interval"), burst = get(before, "burst"),
  max_priority = get(before, "max_priority"),
}, now)
commit()
return {answer = "ok", now = now, fields = made}
