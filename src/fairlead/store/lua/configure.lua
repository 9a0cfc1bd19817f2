-- Open a namespace: write its schema version and its policy. A newer schema is refused. Without `govern` an existing policy
-- stays as it is.
--
-- ARGV     schema policy govern token
-- RETURNS  ok | newer schema | older schema (it must be migrated first)
-- FLAGS    allow-oom
-- GUARD    epoch

local found = call("HGET", keys.meta, "schema")
if found and tonumber(found) > tonumber(schema) then return {answer = "newer", schema = tonumber(found)} end
whole(keys.meta)
if found and (tonumber(found) < tonumber(schema) or get(act.meta, "migrating")) then return {answer = "older", schema = tonumber(found)} end
put(act.meta, "schema", tonumber(schema))
if not get(act.meta, "epoch") then epochs.begin("first", token) end
acts.set_policy(cmsgpack.unpack(policy), govern == "1")
put(act.meta, "alarm", 0) -- thresholds may have changed: look at everything once
commit()
return {answer = "ok"}
