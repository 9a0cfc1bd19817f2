-- Note what waits now and what has been counted so far, unless it was noted in these ten seconds. Kept for an hour.
--
-- ARGV     clock
-- RETURNS  ok noted | uninitialised
-- FLAGS    allow-oom

local EVERY, KEPT = 10000, 361 -- ms; samples: those of an hour, and the one that its first is compared with
local MOST_AHEAD = 60000 -- ms by which the clock may have gone back

local last = call("XREVRANGE", keys.samples, "+", "-", "COUNT", 1)[1]
local last_at = last and tonumber(string.match(last[1], "^%d+")) or 0
if math.floor(last_at / EVERY) >= math.floor(now / EVERY) and last_at - now <= MOST_AHEAD then return {answer = "ok", noted = 0} end
if last_at > now then write({"UNLINK", keys.samples}) end

local depth, oldest = {}, {}
for _, place in ipairs(choice.PLACES) do
  local class = subs.class(place)
  local arrival = tonumber(call("ZRANGE", keys.age(place), 0, 0, "WITHSCORES")[2])
  depth[class + 1] = (depth[class + 1] or 0) + backlog.queued_at(place)
  oldest[class + 1] = math.max(oldest[class + 1] or 0, arrival and now - arrival or 0)
end

-- Where a count belongs in a sample, and as what; other counts are left out.
local PARTS = {
  {"submitted", "^submitted:(.*)"}, {"waits", "^wait:(.*)"}, {"ended", "^run:%d+:%d:(.*)"}, {"ended", "^ended:%d:(.*)"},
}

local function counts()
  local found, flat = {submitted = {}, waits = {}, ended = {}}, call("HGETALL", keys.metrics)
  for i = 1, #flat, 2 do
    for _, part in ipairs(PARTS) do
      local list, of = found[part[1]], string.match(flat[i], part[2])
      if of then list[of] = (list[of] or 0) + tonumber(flat[i + 1]) end
    end
  end
  return found
end

local sample = counts()
sample.depth, sample.oldest = depth, oldest
write({"XADD", keys.samples, "MAXLEN", KEPT, int(now) .. "-1", "sample", cmsgpack.pack(sample)})
commit()
return {answer = "ok", noted = 1}
