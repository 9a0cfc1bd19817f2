-- A worker that waits is handed a task with the word that wakes it: it need not ask for it first.
--
-- The word may be lost, so the worker says with each claim of what it was handed it has heard, and is given the rest again.
--
-- USES     granting waking

-- Time alone has something to do first, or somebody may ask for a hold: that is for a claim.
local function is_due(now)
  local alarm, _, patient_until = number(meta, "alarm"), first(patience)
  return alarm and alarm <= now or patient_until and patient_until <= now
end

-- The sub-queue whose task it was handed; nil when it should be called instead. Not one that was silent for long: what a dead
-- worker is handed is free again only when its lease ends.
local function hand_to(me)
  local lease = number(me, "takes")
  if not lease or is_due(instant) or instant - number(me, "seen") > setting("worker_ttl") / 2 then return nil end
  local offer = offer_of(me, lease, 64, instant)
  local sub = give(offer, 1)
  if not sub then return nil end
  local id = offer.ids[1]
  put(me, "handed", (get(me, "handed") or "") .. id .. ":" .. int(hash(task_key(id)).known.fence) .. " ")
  call_worker(me.id, "take:" .. cmsgpack.pack({instant, content_of(id)}))
  return sub
end

-- What it was handed and has not heard of, although it still holds it; from now on it has. `heard` are fences. Its lease begins
-- anew: who is given a task by a claim counts it from there.
local function not_heard_of(me, heard, lease, now)
  local ids, knows, handed = {}, {}, get(me, "handed")
  if not handed then return ids end
  for fence in string.gmatch(heard, "%d+") do knows[fence] = true end
  for id, fence in string.gmatch(handed, "(%S+):(%d+) ") do
    local t = not knows[fence] and task_record(id)
    if t and is_held_by(t, me.id, fence) then
      ids[#ids + 1] = id
      prolong(t, lease, now)
    end
  end
  put(me, "handed", nil)
  return ids
end
