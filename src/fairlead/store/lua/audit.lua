-- Append an entry to the audit, if nobody was faster: it names the hash of the one before it. Without a digest it only tells what
-- the next entry has to name.
--
-- ARGV     previous digest entry clock
-- RETURNS  ok <seq> | behind <last hash or ""> <next seq> <now> | uninitialised
-- FLAGS    allow-oom

local int, write, commit = unit.int, unit.write, acts.commit
local number = hashes.number
local next_number, begin = acts.next_number, acts.begin

local MOST_KEPT = 10000
local now = begin(clock)
if not now then return {"uninitialised"} end
local last = call("XREVRANGE", keys.audit, "+", "-", "COUNT", 1)[1]
local last_hash = last and last[2][4] or ""
if digest == "" or previous ~= last_hash then
  return {"behind", last_hash, (number(act.meta, "audited") or 0) + 1, int(now)}
end

local seq = next_number("audited")
write({"XADD", keys.audit, "MAXLEN", MOST_KEPT, "*", "entry", entry, "hash", digest})
commit()
return {"ok", seq}
