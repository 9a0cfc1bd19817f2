-- Keep what the estimator has learnt, by field, so that its successor continues; "" is forgotten. Only the caretaker may.
--
-- ARGV     who fields
-- RETURNS  ok | replaced | uninitialised
-- FLAGS    allow-oom

if call("GET", keys.caretaker) ~= who then return {answer = "replaced"} end
local learnt = hash(keys.learnt)
for field, value in pairs(cmsgpack.unpack(fields)) do put(learnt, field, value ~= "" and value or nil) end
put(learnt, "kept_at", math.floor(epochs.micros_now() / 1000)) -- by it the recorder knows that there is an estimator
commit()
return {answer = "ok"}
