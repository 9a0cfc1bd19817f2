-- Open a namespace: write the schema version once, and the policy every time. A newer schema is refused.
--
-- KEYS     meta
-- ARGV     schema policy
-- RETURNS  ok | newer <schema>
-- USES     begin

local found = call("HGET", meta_key, "schema")
if found and tonumber(found) > tonumber(schema) then return {"newer", found} end
put(meta, "schema", tonumber(schema))
for field, value in pairs(cmsgpack.unpack(policy)) do put(meta, field, value) end
put(meta, "alarm", 0) -- thresholds may have changed: look at everything once
commit()
return {"ok"}
