-- Make a process the caretaker, or keep it so, unless another one is. With a lease of 0 it steps back.
--
-- KEYS     meta
-- ARGV     who lease
-- RETURNS  ok <the caretaker or ""> | uninitialised
-- FLAGS    allow-oom
-- USES     begin

if not begin("") then return {"uninitialised"} end
local elected = call("GET", caretaker_key)
if elected and elected ~= who then return {"ok", elected} end
if lease == "0" then
  write({"UNLINK", caretaker_key})
else
  write({"SET", caretaker_key, who, "PX", lease})
end
commit()
return {"ok", lease == "0" and "" or who}
