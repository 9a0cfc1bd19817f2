-- Make a process the caretaker, or keep it, unless another process is. With a lease of 0 it resigns.
--
-- ARGV     who lease
-- RETURNS  ok caretaker? | uninitialised
-- FLAGS    allow-oom

local elected = call("GET", keys.caretaker)
if elected and elected ~= who then return {answer = "ok", caretaker = elected} end
if lease == "0" then
  write({"UNLINK", keys.caretaker})
else
  write({"SET", keys.caretaker, who, "PX", lease})
end
commit()
return {answer = "ok", caretaker = lease ~= "0" and who or nil}
