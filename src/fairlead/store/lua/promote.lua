-- Do what time alone does to waiting tasks: end delays and waits, promote, refill rate limits.
--
-- ARGV     clock
-- RETURNS  ok moved more (may be due) | uninitialised
-- FLAGS    allow-oom

local more = time.promote_due(now)
waking.reindex_and_commit()
return {answer = "ok", moved = act.moved, more = more}
