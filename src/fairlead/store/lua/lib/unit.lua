-- One act as a unit of work: it reads at any time, and writes only in commit().
--
-- Scripts have no rollback. So views collect what changes, an error while deciding leaves nothing behind, and if a write
-- itself breaks, commit() keeps what was left to write in meta.unfinished for the next act to finish.

function int(value)
  return string.format("%d", value)
end

-- As the server stores it. Nearly all numbers are whole; the server would format them like fractions, which takes three times as long.
function text_of(value)
  local kind = type(value)
  if kind == "table" then return cmsgpack.pack(value) end
  if kind ~= "number" then return value end
  local text = act.texts[value]
  if not text then
    text = value % 1 == 0 and string.format("%d", value) or value
    act.texts[value] = text
  end
  return text
end

-- {"COMMAND", key, ...}
function write(command)
  act.writes[#act.writes + 1] = command
end

-- A variadic command with its arguments, {"COMMAND", key, ...}, in pieces that fit the Lua stack; nothing without arguments.
function write_many(command, step)
  local length, most = #command, 2 + step * 200
  if length <= 2 then return end
  if length <= most then return write(command) end
  for from = 3, length, step * 200 do
    write({command[1], command[2], unpack(command, from, math.min(from + step * 200 - 1, length))})
  end
end

local function finish_writes(list)
  local done = 0
  local ok, problem = pcall(function()
    for i = 1, #list do
      call(unpack(list[i]))
      done = i
    end
  end)
  return ok, problem, done
end

-- Makes all writes of the act.
function unit.flush()
  local ok, problem, done = finish_writes(act.writes)
  if not ok and done == 0 then error(problem) end -- nothing was written: memory is full, say
  if not ok then
    local rest = {}
    for i = done + 1, #act.writes do rest[#rest + 1] = act.writes[i] end
    call("HSET", keys.meta, "unfinished", cmsgpack.pack(rest))
    error(problem)
  end
end
