-- Append an entry to the audit, if nobody was faster: it names the hash of the one before it. Without a digest it only tells what
-- the next entry has to name.
--
-- ARGV     previous digest entry clock
-- RETURNS  ok seq | behind last (hash) seq (of the next) now | uninitialised
-- FLAGS    allow-oom

local MOST_KEPT = 10000
local last = call("XREVRANGE", keys.audit, "+", "-", "COUNT", 1)[1]
-- what was written by hand may be no text, which no answer can hold
local last_hash = string.match(last and last[2][4] or "", "^%x*$") or "unreadable"
if digest == "" or previous ~= last_hash then
  return {answer = "behind", last = last_hash, seq = (number(act.meta, "audited") or 0) + 1, now = now}
end

local seq = next_number("audited")
write({"XADD", keys.audit, "MAXLEN", MOST_KEPT, "*", "entry", entry, "hash", digest})
commit()
return {answer = "ok", seq = seq}
