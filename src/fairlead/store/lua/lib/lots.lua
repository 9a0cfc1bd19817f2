-- Where each sub-queue stands: in the heads of its lane, or parked at a limit without room.
--
-- A lot gathers the sub-queues of a lane that last lacked the same units of a limit. A full limit hides them all, because the
-- lot's one marker is then not in the heads; room shows them again with one insertion, however many they are.

local hash, get, number, put = hashes.hash, hashes.get, hashes.number, hashes.put
local ordered, remove, insert, add, first, members = sets.ordered, sets.remove, sets.insert, sets.add, sets.first, sets.members
local start_at = acts.start_at

-- The owner of a hold has more room than others, so it never shares a lot with them.
local function lot_of(need, sub)
  return names.lot(need.name, need.units, get(limits.of(need.name), "hold") == sub, subs.lane(sub))
end

local function leave(sub, home)
  local seq, kind, where = names.cut_home(home)
  if kind == "h" then
    remove(ordered(keys.heads(where)), seq .. "s" .. sub)
  else
    remove(ordered(keys.parked(where)), seq .. sub)
    act.touched_lots[where] = "content"
  end
end

-- Puts a sub-queue with the head (seq, tag) where it belongs: into the heads, or at the limit that it lacks.
function lots.place(sub, seq, tag, lacking)
  local home = get(act.homes, sub)
  if home then leave(sub, home) end
  if lacking then
    local lot = lot_of(lacking, sub)
    insert(ordered(keys.parked(lot)), seq .. sub, tag)
    act.touched_lots[lot] = "content"
    put(act.homes, sub, names.home(seq, "p", lot))
  else
    local lane = subs.lane(sub)
    insert(ordered(keys.heads(lane)), seq .. "s" .. sub, tag)
    put(act.homes, sub, names.home(seq, "h", lane))
  end
end

-- A sub-queue without a head stands nowhere.
function lots.remove(sub)
  leave(sub, get(act.homes, sub))
  put(act.homes, sub, nil)
end

-- Shows a parked sub-queue: it is looked at again by the next claim.
function lots.unpark(sub)
  local home = get(act.homes, sub)
  if not home then return end
  local _, kind = names.cut_home(home)
  if kind == "p" then
    local head, tag = first(subs.queue(sub))
    lots.place(sub, names.seq_of(head), tag, nil)
  end
end

-- A rate comes back to its lots when it has refilled. What the burst can never give (it was lowered) is not worth coming back for.
local function watch_refill(limit, lot, units, waits)
  if waits and not get(limit, "paused") and units <= number(limit, "burst") then
    local instant = limits.refilled_at(limit, units)
    add(ordered(keys.refills), lot, instant)
    start_at(instant)
  else
    remove(ordered(keys.refills), lot)
  end
end

-- Puts a lot's marker where it belongs.
local function settle_lot(lot, what)
  local name, units, own, lane = names.cut_lot(lot)
  units = tonumber(units)
  local limit = limits.of(name)
  local least, tag = first(ordered(keys.parked(lot)))
  if what == "content" then
    local waiting = ordered(keys.lots(name))
    if least then add(waiting, lot, 0) else remove(waiting, lot) end
  end
  local open = least and limits.room(limit, subs.class(lane), own == "!") >= units
  local shown, show = get(hash(keys.markers), lot), open and names.seq_of(least) or nil
  if shown ~= show then
    local heads = ordered(keys.heads(lane))
    if shown then remove(heads, shown .. "m" .. lot) end
    if show then add(heads, show .. "m" .. lot, tag) end
    put(hash(keys.markers), lot, show)
  end
  if get(limit, "kind") == "rate" then watch_refill(limit, lot, units, least and not open) end
end

function lots.settle()
  for name in pairs(act.touched_limits) do
    for _, lot in ipairs(members(ordered(keys.lots(name)))) do act.touched_lots[lot] = act.touched_lots[lot] or "room" end
  end
  local touched = act.touched_lots
  act.touched_limits, act.touched_lots = {}, {}
  for lot, what in pairs(touched) do settle_lot(lot, what) end
end
