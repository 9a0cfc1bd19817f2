-- Append an entry to the audit, unless another caller was faster: it names the hash of the entry before it. Without a digest it only
-- returns what the next entry has to name.
--
-- ARGV     previous digest entry clock
-- RETURNS  ok seq | behind last (hash) seq (of the next) now | uninitialised
-- FLAGS    allow-oom

local MOST_KEPT = 10000
local last = call("XREVRANGE", keys.audit, "+", "-", "COUNT", 1)[1]
-- an entry written by hand may not be text, which a reply cannot contain
local last_hash = string.match(last and last[2][4] or "", "^%x*$") or "unreadable"
if digest == "" or previous ~= last_hash then
  return {answer = "behind", last = last_hash, seq = (number(act.meta, "audited") or 0) + 1, now = now}
end

local seq = next_number("audited")
write({"XADD", keys.audit, "MAXLEN", MOST_KEPT, "*", "entry", entry, "hash", digest})
commit()
return {answer = "ok", seq = seq}
