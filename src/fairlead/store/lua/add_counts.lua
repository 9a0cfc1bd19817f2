-- Add what a server process has counted, by field, and note by how many ms its event loop was late.
--
-- ARGV     process counts lag clock
-- RETURNS  ok | uninitialised
-- FLAGS    allow-oom

local KEPT = 60000 -- ms; a process that is silent for longer has ended

for field, by in pairs(cmsgpack.unpack(counts)) do write({"HINCRBY", keys.served, field, text_of(by)}) end
local lags = whole(keys.lags) or hash(keys.lags)
for other, known in pairs(lags.known) do
  if now - tonumber(string.match(known, "%d+$")) > KEPT then put(lags, other, nil) end
end
put(lags, process, lag .. ":" .. int(now))
lags.ttl = KEPT
commit()
return {answer = "ok"}
