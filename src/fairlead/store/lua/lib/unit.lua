-- One act as a unit of work: it reads as it goes, and writes only in commit().
--
-- Scripts have no rollback. So views collect what changes, an error while deciding leaves nothing behind, and if a write
-- itself breaks, commit() keeps what was left to write in meta.unfinished for the next act to finish.

local writes, flushers = {}, {}
local NONE = {} -- stands for a table that nothing was put into yet

local format, kind_of, to_number = string.format, type, tonumber -- what is used most is found without a search

local function int(value)
  return format("%d", value)
end

local texts = {} -- of numbers: the same few instants and settings are written for every task of a batch

-- Numbers are whole here, nearly all; the server would write them as it writes fractions, which takes three times as long.
local function text_of(value)
  local text = texts[value]
  if not text then
    text = kind_of(value) == "number" and value % 1 == 0 and format("%d", value) or value
    texts[value] = text
  end
  return text
end

-- {"COMMAND", key, ...}
local function write(command)
  writes[#writes + 1] = command
end

-- A variadic command with its arguments, {"COMMAND", key, ...}, in pieces that fit the Lua stack; none, when there are none.
local function write_many(command, step)
  local length, most = #command, 2 + step * 200
  if length <= 2 then return end
  if length <= most then return write(command) end
  for from = 3, length, step * 200 do
    write({command[1], command[2], unpack(command, from, math.min(from + step * 200 - 1, length))})
  end
end

local function on_commit(flush)
  flushers[#flushers + 1] = flush
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

-- Hashes and sets, which everybody uses, come last: others may still change them.
local function commit()
  for i = #flushers, 1, -1 do flushers[i]() end
  local ok, problem, done = finish_writes(writes)
  if not ok and done == 0 then error(problem) end -- nothing was written: memory is full, say
  if not ok then
    local rest = {}
    for i = done + 1, #writes do rest[#rest + 1] = writes[i] end
    call("HSET", meta_key, "unfinished", cmsgpack.pack(rest))
    error(problem)
  end
end
