-- Open a namespace: write its schema version and its policy. A newer schema is refused. Who does not govern, but only
-- joins, leaves a policy that is there as it is.
--
-- ARGV     schema policy govern
-- RETURNS  ok | newer <schema> | older <schema>: it must be migrated first

local commit = acts.commit
local whole, get, put = hashes.whole, hashes.get, hashes.put

local found = call("HGET", keys.meta, "schema")
if found and tonumber(found) > tonumber(schema) then return {"newer", found} end
whole(keys.meta)
if found and (tonumber(found) < tonumber(schema) or get(act.meta, "migrating")) then return {"older", found} end
put(act.meta, "schema", tonumber(schema))
for field, value in pairs(cmsgpack.unpack(policy)) do
  if govern == "1" or not get(act.meta, field) then put(act.meta, field, value) end
end
put(act.meta, "alarm", 0) -- thresholds may have changed: look at everything once
commit()
return {"ok"}
