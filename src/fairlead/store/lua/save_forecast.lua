-- Replace the forecast for `ttl` ms: its head, and its curves as texts, by name. Only the caretaker may: one that was replaced has older
-- facts.
--
-- ARGV     who ttl forecast
-- RETURNS  ok | replaced | uninitialised
-- FLAGS    allow-oom

if call("GET", keys.caretaker) ~= who then return {answer = "replaced"} end
write({"UNLINK", keys.curves})
local fields = {"HSET", keys.curves}
for name, value in pairs(cmsgpack.unpack(forecast)) do
  fields[#fields + 1] = name
  fields[#fields + 1] = name == "head" and cmsgpack.pack(value) or value
end
write_many(fields, 2)
write({"PEXPIRE", keys.curves, ttl})
commit()
return {answer = "ok"}
