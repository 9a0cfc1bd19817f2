-- Which data an act may work on: what its caller knows, never older data.
--
-- A namespace has an epoch, written when it is opened for the first time and when an operator accepts what a loss has left. Its beat
-- rises with every act that writes. A caller names the epoch that it has joined and the highest beat that it has received: when the data
-- is gone, replaced or older than that, no act writes anything before the operator has decided.

local AHEAD = 60000000 -- microseconds by which the clock of a server that took over may be behind that of the previous one

function epochs.micros_now()
  local now = call("TIME")
  return now[1] * 1000000 + now[2]
end

-- What the caller needs to judge the loss itself.
local function lost()
  local meta, reply = act.meta, {answer = "lost", now = math.floor(epochs.micros_now() / 1000)}
  for _, field in ipairs({"schema", "epoch", "opening", "sealed"}) do reply[field] = get(meta, field) end
  reply.opens_at = number(meta, "opens_at")
  return reply
end

-- The namespace was accepted, but earlier handlers may still run: their leases end first.
local function still_closed()
  local opens_at = number(act.meta, "opens_at")
  if not opens_at then return false end
  if epochs.micros_now() < opens_at * 1000 then return true end
  put(act.meta, "opens_at", nil)
  return false
end

-- The reply to a call that must not be carried out; otherwise nil.
function epochs.refusal(epoch, seen)
  whole(keys.meta)
  if get(act.meta, "sealed") or still_closed() then return lost() end
  if epoch == "" then return nil end
  if get(act.meta, "epoch") ~= epoch or (number(act.meta, "beat") or 0) < tonumber(seen) then return lost() end
end

-- Every act that writes raises the beat; its reply contains it.
function epochs.beat()
  if #act.writes > 0 or #act.changed_hashes > 0 then put(act.meta, "beat", (number(act.meta, "beat") or 0) + 1) end
end

function epochs.mark(reply, epoch)
  reply.beat = number(act.meta, "beat")
  if epoch == "" then reply.epoch = get(act.meta, "epoch") end
  return reply
end

-- A new epoch. It begins with a beat above all earlier ones, including those that the store has lost.
function epochs.begin(opening, token)
  local beat = math.max((number(act.meta, "beat") or 0) + 1, epochs.micros_now())
  put(act.meta, "beat", beat)
  put(act.meta, "epoch", int(beat) .. "-" .. token)
  put(act.meta, "opening", opening)
end

-- Fences continue above all that were given before the loss. They stay that far ahead of the clock: if they only counted on until it
-- caught up, another replica that took over meanwhile would count on in the same way.
function epochs.raise_fence()
  local now = epochs.micros_now()
  local lead = math.max(number(act.meta, "fence_lead") or 0, AHEAD, (number(act.meta, "fence") or 0) - now)
  put(act.meta, "fence_lead", lead)
  put(act.meta, "fence", now + lead)
end
