-- The least a queue does between two batches: drop what is done, give the next. KEYS jobs record-prefix, ARGV count done-ids
for i = 2, #ARGV do redis.call("DEL", KEYS[2] .. ARGV[i]) end
local ids, answer = redis.call("LPOP", KEYS[1], ARGV[1]) or {}, {}
for i, id in ipairs(ids) do
  redis.call("HSET", KEYS[2] .. id, "state", "executing")
  answer[i] = {id, redis.call("HGET", KEYS[2] .. id, "parameters")}
end
return answer
