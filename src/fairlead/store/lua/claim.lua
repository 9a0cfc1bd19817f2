-- Give the best waiting tasks to one worker: dequeue, lease, units and fence in one step.
--
-- KEYS     meta
-- ARGV     worker want lease wait request capabilities clock
-- RETURNS  ok <next alarm or ""> <packed { <id> {field = value...} }...> <now> <1: ask again at once> | draining <now>
--          | unknown_worker | uninitialised
-- FLAGS    allow-oom
-- USES     choose time holds waking

local now = begin(clock)
if not now then return {"uninitialised"} end
local me = worker_record(worker)
if not me or now - number(me, "seen") > setting("worker_ttl") then return {"unknown_worker"} end

local function record_of(t)
  local record, job = t.known, job_of(t)
  if t.has_gaps then -- some of it was deleted
    record = {}
    for field, kept in pairs(t.known) do record[field] = kept or nil end
  end
  if job then record.parameters = step_parameters(job) end
  return record
end

local function answer(ids, again)
  local list = {}
  for i, id in ipairs(ids) do list[i] = {id, record_of(whole(task_key(id)))} end
  -- packed: one string instead of some forty for each task, for the server to send and the client to read
  return {"ok", get(meta, "alarm") or "", cmsgpack.pack(list), now, again and 1 or 0}
end

-- The reply to this very request was lost: the tasks are leased already, say so again. A worker may have several requests
-- under way, told apart by their first letter: of each letter the last is remembered.
local letter = string.match(request, "^%a") or ""
if request ~= "" and get(me, "request" .. letter) == request then
  local still = {}
  for id in string.gmatch(get(me, "granted" .. letter) or "", "%S+") do
    local t = task_record(id)
    if t and get(t, "state") == "executing" and get(t, "worker") == worker then still[#still + 1] = id end
  end
  return answer(still)
end

if get(me, "state") ~= "active" then return {"draining", now} end
advance(now)
settle()
make_holds(now)
not_idle(me)
if capabilities ~= "" then put(me, "capabilities", capabilities) end -- they are others now than when it registered

local held, held_not_high = running_on(worker)
local free = number(me, "capacity") - held
local open = number(me, "capacity") - number(me, "reserve") - held_not_high
local lanes_here, steps, ids = lanes_for(me), {left = 64 + tonumber(want)}, {}
local running, leased_until = ordered(running_key(worker)), now + tonumber(lease)
local freed_at = leased_until + setting("grace")

local function start(sub)
  local id = string.sub(first(queue_of(sub)), 14)
  local t = whole(task_key(id)) -- its content is part of the answer
  t.id = id
  local known = t.known
  local place, native_high, tag = known.place, known.priority == "0", tonumber(known.tag)
  if entered_subs[sub] then entered_subs[sub] = entered_subs[sub] - 1 end -- nobody else has to be woken for it
  dequeue(t, sub)
  book_start(place, tag)
  book_turn(place)
  take_units(id, needs_of(sub))
  put_all(t, {
    "state", "executing", "fence", next_number("fence"), "worker", worker, "started", now,
    "deadline", now + known.timeout, "lease_until", leased_until,
  })
  begin_lease(id, freed_at, running, native_high and 0 or 1)
  if known.wait_until then remove(waits, id) end
  if known.progress then put(t, "progress", nil) end -- of an earlier run
  if known.emitted then put(t, "emitted_before", known.emitted) end
  step_started(t, now)
  event(t, "claim", "queued", "executing", now, {
    worker = worker, place = place, tag = tag, waited = now - known.arrival,
    looked_at = 64 + tonumber(want) - steps.left,
  })
  settle()
  free = free - 1
  if not native_high then open = open - 1 end
  ids[#ids + 1] = id
end

while #ids < tonumber(want) and free > 0 do
  local sub = choose(lanes_here, open > 0, steps)
  if not sub then break end
  start(sub)
end

if #ids > 0 then alarm_at(freed_at) end
if request ~= "" then
  put(me, "request" .. letter, request)
  put(me, "granted" .. letter, table.concat(ids, " "))
end
heard_of(me, now)
local has_room = #ids < tonumber(want) and free > 0
if has_room and steps.left > 0 and wait == "1" then set_idle(me, open > 0, now) end
local full = free <= 0 and #ids == 0 and wait == "1" -- it asks before the result is in that makes room for it
if full or get(me, "full") then put(me, "full", full and 1 or nil) end
settle()
if has_room then tell_time = false end -- this one learns of it
wake_idle_workers()
commit()
return answer(ids, has_room and steps.left == 0)
