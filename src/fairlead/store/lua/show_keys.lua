-- Return API keys and their fields. Without an id: a page of all keys, unordered, from a cursor on, which is 0 at first and after
-- the last page. An unknown id returns no key, and takes as long as a known one.
--
-- ARGV     id cursor clock
-- RETURNS  ok now keys {id fields ends?}... cursor (of the next page) | uninitialised
-- FLAGS    allow-oom

local PAGE = 128
local page = id ~= "" and {"0", {id, ""}} or call("ZSCAN", keys.keys, cursor, "COUNT", PAGE)
local list, found = {}, page[2]
for i = 1, #found, 2 do
  local record = access.record(found[i])
  if record then list[#list + 1] = {id = found[i], fields = record.known, ends = tonumber(found[i + 1])} end
end
return {answer = "ok", now = now, keys = list, cursor = page[1]}
