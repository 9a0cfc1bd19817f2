-- Elect a process for a role (caretaker, recorder), or keep it elected, unless another process is. With a lease of 0 it resigns.
--
-- ARGV     role who lease
-- RETURNS  ok elected? | uninitialised
-- FLAGS    allow-oom

local elected = call("GET", keys[role])
if elected and elected ~= who then return {answer = "ok", elected = elected} end
if lease == "0" then
  write({"UNLINK", keys[role]})
else
  write({"SET", keys[role], who, "PX", lease})
end
commit()
return {answer = "ok", elected = lease ~= "0" and who or nil}
