-- Make a process the caretaker, or keep it so, unless another one is. With a lease of 0 it steps back.
--
-- ARGV     who lease
-- RETURNS  ok <the caretaker or ""> | uninitialised
-- FLAGS    allow-oom

local write, commit = unit.write, acts.commit
local begin = acts.begin

if not begin("") then return {"uninitialised"} end
local elected = call("GET", keys.caretaker)
if elected and elected ~= who then return {"ok", elected} end
if lease == "0" then
  write({"UNLINK", keys.caretaker})
else
  write({"SET", keys.caretaker, who, "PX", lease})
end
commit()
return {"ok", lease == "0" and "" or who}
