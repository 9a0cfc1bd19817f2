-- Make a key with the rights of another one, which ends after the overlap, if not before.
--
-- KEYS     meta
-- ARGV     id digest old overlap clock
-- RETURNS  ok <now> { <field> <value>... } | taken | key_unknown | key_ended | uninitialised
-- USES     access

local now = begin(clock)
if not now then return {"uninitialised"} end
local before = key_record(old)
if not before then return {"key_unknown"} end
local expires = number(before, "expires") or NEVER
if get(before, "revoked") or expires <= now then return {"key_ended"} end
if key_record(id) then return {"taken"} end

local ends = math.min(expires, now + tonumber(overlap))
put(before, "expires", ends)
key_ends(old, ends)
local made = issue(id, {
  digest = digest, replaces = old, name = get(before, "name"), scopes = get(before, "scopes"), tenant = get(before, "tenant"),
  lifetime = number(before, "lifetime"), interval = get(before, "interval"), burst = get(before, "burst"),
}, now)
commit()
return {"ok", int(now), key_fields(made)}
