-- End a task by request. A running one is cancelled at once; its units are free when its worker confirms or its lease ends.
--
-- KEYS     meta
-- ARGV     id clock
-- RETURNS  ok <worker that must stop or ""> | already_finished <state> | unknown_task | uninitialised
-- FLAGS    allow-oom
-- USES     endings workers

local now = begin(clock)
if not now then return {"uninitialised"} end
local t = task_record(id)
if not t then return {"unknown_task"} end
local state = get(t, "state")
if state == "cancelled" then return {"ok", get(t, "stopping") and get(t, "worker") or ""} end
if state ~= "queued" and state ~= "delayed" and state ~= "executing" then return {"already_finished", state} end

local stopping = ""
if state == "executing" then
  stopping = get(t, "worker")
  put(t, "stopping", get(t, "fence"))
  put(t, "fence", next_number("fence")) -- whatever the worker reports from now on is stale
elseif state == "queued" then
  dequeue(t)
else
  end_delay(t)
end
remove(waits, id)
finish(t, "cancel", "cancelled", now)
if state == "executing" then
  -- the record must outlive the lease, which knows by it what to free
  t.ttl = math.max(t.ttl, number(t, "lease_until") - now + setting("grace") + 3600000)
  call_worker(stopping, "cancel:" .. id)
end
settle_and_commit()
return {"ok", stopping}
