-- Give the best waiting tasks to one worker, and again what it was handed and has not heard of.
--
-- KEYS     meta
-- ARGV     worker want lease wait request heard capabilities clock
-- RETURNS  ok <next alarm or ""> <packed { <id> {field = value...} }...> <now> <1: ask again at once>
--          | draining <now> <packed, as above> | unknown_worker | uninitialised
-- FLAGS    allow-oom
-- USES     granting handing time holds waking

local now = begin(clock)
if not now then return {"uninitialised"} end
local me = worker_record(worker)
if not me or now - number(me, "seen") > setting("worker_ttl") then return {"unknown_worker"} end

-- packed: one string instead of some forty for each task, for the server to send and the client to read
local function packed(ids)
  local list = {}
  for i, id in ipairs(ids) do list[i] = content_of(id) end
  return cmsgpack.pack(list)
end

-- The reply to this very request was lost: the tasks are leased already, say so again. A worker may have several requests
-- under way, told apart by their first letter: of each letter the last is remembered.
local letter, is_active = string.match(request, "^%a") or "", get(me, "state") == "active"
if request ~= "" and get(me, "request" .. letter) == request then
  local still = {}
  for id in string.gmatch(get(me, "granted" .. letter) or "", "%S+") do
    local t = task_record(id)
    if t and get(t, "state") == "executing" and get(t, "worker") == worker then still[#still + 1] = id end
  end
  if not is_active then return {"draining", now, packed(still)} end
  return {"ok", get(meta, "alarm") or "", packed(still), now, 0}
end

local function remember(ids)
  if request == "" then return end
  put(me, "request" .. letter, request)
  put(me, "granted" .. letter, table.concat(ids, " "))
end

if not is_active then
  local ids = not_heard_of(me, heard, tonumber(lease), now)
  if #ids > 0 then remember(ids) end
  commit()
  return {"draining", now, packed(ids)}
end
advance(now)
settle()
local ids = not_heard_of(me, heard, tonumber(lease), now) -- now, when leases that ran out have ended
make_holds(now)
not_idle(me)
if capabilities ~= "" then put(me, "capabilities", capabilities) end -- they are others now than when it registered

local most = tonumber(want)
local offer = offer_of(me, tonumber(lease), 64 + most, now)
give(offer, most)
for _, id in ipairs(offer.ids) do ids[#ids + 1] = id end

remember(ids)
heard_of(me, now)
local has_room = #offer.ids < most and offer.free > 0
if has_room and offer.steps.left > 0 and wait ~= "0" then set_idle(me, offer.open > 0, wait == "2" and lease, now) end
local full = offer.free <= 0 and #offer.ids == 0 and wait ~= "0" -- it asks before the result is in that makes room for it
if full or get(me, "full") then put(me, "full", full and 1 or nil) end
settle()
if has_room then tell_time = false end -- this one learns of it
wake_idle_workers()
commit()
return {"ok", get(meta, "alarm") or "", packed(ids), now, has_room and offer.steps.left == 0 and 1 or 0}
