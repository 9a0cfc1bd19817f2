-- Define or change a limit, at once. A limit lowered below its use gives no units until the use is below the limit again.
--
-- `scope`: of the tenant that owns it, or "". `shared`: "1" every tenant may name it, "0" none, "" as before.
--
-- ARGV     scope name kind limit interval burst shared clock
-- RETURNS  ok | too_many_limits most (of a tenant) | invalid field code message | uninitialised
-- FLAGS    allow-oom

local stored = scope .. name
if tiers.of_limit(stored) then return types.invalid("name", "invalid_input", "is the limit of a tier: change [tiers] in the settings") end
if scope ~= "" and not limits.of(stored) and tenants.is_full(scope) then
  return {answer = "too_many_limits", most = tenants.MOST_LIMITS}
end
limits.define(stored, kind, limit, interval, burst)
if shared ~= "" then tenants.share(limits.of(stored), shared == "1") end
waking.wake()
commit()
return {answer = "ok"}
