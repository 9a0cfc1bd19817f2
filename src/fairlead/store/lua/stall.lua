-- A worker lives but does not respond: it is not woken until it claims again, and tasks that it has not begun return, unrun, to the
-- same place. `begun` are the fences of what it runs or has not reported yet. In pages, from cursor 0 on; the rows are all that
-- this request has released so far, so that a repeated request returns the same.
--
-- ARGV     worker request begun cursor clock
-- RETURNS  ok rows {id fence}... cursor (of the next page, 0 after the last) | unknown_worker | uninitialised
-- FLAGS    allow-oom

local me = workers.record(worker)
if not me then return {answer = "unknown_worker"} end

local PAGE = 64
local is_begun = {}
for _, fence in ipairs(cmsgpack.unpack(begun)) do is_begun[fence] = true end

-- The fence under which it was released; nil when it stays with the worker.
local function take_back(id)
  local t = records.find(id)
  local fence = t and (get(t, "stopping") or get(t, "state") == "executing" and get(t, "fence"))
  if not fence or is_begun[fence] or get(t, "worker") ~= worker then return nil end
  if get(t, "stopping") then leases.drop(t) else endings.give_back(t, now) end
  return fence
end

-- First: it must not be woken for what it releases.
local was_called = get(me, "called")
workers.not_idle(me)
if was_called then put(me, "called", nil) end

local relieved = get(me, "stalled") == request and get(me, "relieved") or ""
local page = call("ZSCAN", keys.running(worker), cursor, "COUNT", PAGE)
for i = 1, #page[2], 2 do
  local fence = take_back(page[2][i])
  if fence then relieved = relieved .. page[2][i] .. ":" .. fence .. " " end
end
put(me, "stalled", request)
put(me, "relieved", relieved ~= "" and relieved or nil)
local rows = {}
for id, fence in string.gmatch(relieved, "(%S+):(%d+) ") do rows[#rows + 1] = {id = id, fence = tonumber(fence)} end
queues.reindex()
if was_called then waking.pass_on() end -- it will not respond to the call
waking.reindex_and_commit()
return {answer = "ok", rows = rows, cursor = page[1]}
