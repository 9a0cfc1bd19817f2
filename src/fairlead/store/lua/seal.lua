-- Close a namespace whose data is gone or older than what a process has seen, for all processes, until an operator accepts it.
-- Processes that start now would take it for a new namespace, or not notice that it is older.
--
-- ARGV     epoch seen
-- RETURNS  ok sealed? (why)
-- FLAGS    allow-oom
-- GUARD    off

whole(keys.meta)
local found, why = get(act.meta, "epoch"), nil
if not found and not get(act.meta, "schema") then
  why = "gone"
elseif found == epoch and (number(act.meta, "beat") or 0) < tonumber(seen) then
  why = "rolled_back"
end
if why and not get(act.meta, "sealed") then
  put(act.meta, "sealed", why)
  put(act.meta, "sealed_at", math.floor(epochs.micros_now() / 1000))
  hashes.write()
  unit.flush()
end
return {answer = "ok", sealed = get(act.meta, "sealed")}
