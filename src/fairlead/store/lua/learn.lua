-- Keep what the estimator has learnt, by field, so that its successor continues; "" is forgotten. Only the caretaker may.
--
-- ARGV     who fields
-- RETURNS  ok | replaced | uninitialised
-- FLAGS    allow-oom

if call("GET", keys.caretaker) ~= who then return {answer = "replaced"} end
local learnt = hash(keys.learnt)
for field, value in pairs(cmsgpack.unpack(fields)) do put(learnt, field, value ~= "" and value or nil) end
commit()
return {answer = "ok"}
