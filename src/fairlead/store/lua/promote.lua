-- Do what time alone does to waiting tasks: ends of delays and of patience, ageing, refilled rate limits.
--
-- ARGV     clock
-- RETURNS  ok due (of one kind, at most) | uninitialised
-- FLAGS    allow-oom

local most = time.promote_due(now)
waking.reindex_and_commit()
return {answer = "ok", due = most}
