#!lua flags=no-writes
-- Reads keys of a namespace, or all of them in one step if the server holds few enough.
--
-- ARGV     prefix most fields key...
-- RETURNS  time rows {key type content ttl}... | false (too many keys)

local prefix, most, fields, keys, call = ARGV[1], tonumber(ARGV[2]), cjson.decode(ARGV[3]), {}, redis.call
if #ARGV > 3 then
  for i = 4, #ARGV do keys[i - 3] = prefix .. ARGV[i] end
elseif call("DBSIZE") > most then
  return false
else
  local cursor = "0"
  repeat
    local page = call("SCAN", cursor, "MATCH", prefix .. "*", "COUNT", 1000)
    cursor = page[1]
    for _, key in ipairs(page[2]) do keys[#keys + 1] = key end
  until cursor == "0"
end
local reads = {
  hash = function(key) return call("HGETALL", key) end,
  zset = function(key) return call("ZRANGE", key, 0, -1, "WITHSCORES") end,
  stream = function(key) return call("XRANGE", key, "-", "+") end,
  string = function(key) return call("GET", key) end,
}
local rows = {}
for i, key in ipairs(keys) do
  local name, kind = string.sub(key, #prefix + 1), call("TYPE", key).ok
  local content
  if kind == "hash" and string.sub(name, 1, 5) == "task:" then
    content = call("HMGET", key, unpack(fields))
  else
    content = reads[kind] and reads[kind](key)
  end
  rows[i] = {name, kind, content or "", call("PTTL", key)}
end
return {call("TIME"), rows}
