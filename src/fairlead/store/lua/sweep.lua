-- Remove left-over entries from the lists of tasks and jobs: a part of each list, where the sweep before it ended.
--
-- ARGV     clock
-- RETURNS  ok removed more (one of the lists has more) | uninitialised
-- FLAGS    allow-oom

local removed, more = listing.sweep()
commit()
return {answer = "ok", removed = removed, more = more}
