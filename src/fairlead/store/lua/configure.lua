-- Open a namespace: write its schema version and its policy. A newer schema is refused. Who does not govern, but only
-- joins, leaves a policy that is there as it is.
--
-- KEYS     meta
-- ARGV     schema policy govern
-- RETURNS  ok | newer <schema>
-- USES     begin

local found = call("HGET", meta_key, "schema")
if found and tonumber(found) > tonumber(schema) then return {"newer", found} end
whole(meta_key)
if found and found ~= schema then write({"DEL", events_key}) end -- its entries had another form
put(meta, "schema", tonumber(schema))
for field, value in pairs(cmsgpack.unpack(policy)) do
  if govern == "1" or not get(meta, field) then put(meta, field, value) end
end
put(meta, "alarm", 0) -- thresholds may have changed: look at everything once
commit()
return {"ok"}
