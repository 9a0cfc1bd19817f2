-- Do what time alone does to waiting tasks: end delays and waits, promote, refill rate limits.
--
-- ARGV     clock
-- RETURNS  ok due (of one kind, at most) | uninitialised
-- FLAGS    allow-oom

local most = time.promote_due(now)
waking.reindex_and_commit()
return {answer = "ok", due = most}
