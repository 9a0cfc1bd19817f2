-- The least a queue does to accept work: a record and a place in a list for each. KEYS jobs record-prefix, ARGV ids
for _, id in ipairs(ARGV) do redis.call("HSET", KEYS[2] .. id, "state", "queued", "parameters", '{"n":1}') end
redis.call("RPUSH", KEYS[1], unpack(ARGV))
return #ARGV
