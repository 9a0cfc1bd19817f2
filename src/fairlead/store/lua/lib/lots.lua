-- Where each sub-queue stands: in the heads of its lane, or parked at a limit without room.
--
-- A lot ("limit=units@lane") gathers the sub-queues of a lane that last lacked the same units of a limit. A full limit hides
-- them all, because the lot's one marker is then not in the heads; room shows them again with one insertion.

local int = unit.int
local hash, get, number, put = hashes.hash, hashes.get, hashes.number, hashes.put
local ordered, remove, insert, add, first, members = sets.ordered, sets.remove, sets.insert, sets.add, sets.first, sets.members
local start_at = acts.start_at

function lots.ticket(seq, id)
  return string.format("%013d", seq) .. id
end

-- The owner of a hold has more room than others, so it never shares a lot with them ("!").
function lots.lot_name(need, sub)
  local own = get(limits.of(need.name), "hold") == sub and "!" or ""
  return need.name .. "=" .. int(need.units) .. own .. "@" .. limits.lane_of(sub)
end

local function leave(sub, home)
  local seq, where = string.sub(home, 1, 13), string.sub(home, 14)
  if where == "h" then
    remove(limits.heads_of(sub), seq .. "s" .. sub)
  else
    local lot = string.sub(where, 2)
    remove(ordered(keys.parked(lot)), seq .. sub)
    act.touched_lots[lot] = "content"
  end
end

-- Moves a sub-queue whose head is (seq, tag) to `where`: "h", "p<lot>", or nil when it is empty.
function lots.stand(sub, where, seq, tag)
  local home = get(act.homes, sub)
  if home then leave(sub, home) end
  if where == "h" then
    insert(limits.heads_of(sub), seq .. "s" .. sub, tag)
  elseif where then
    local lot = string.sub(where, 2)
    insert(ordered(keys.parked(lot)), seq .. sub, tag)
    act.touched_lots[lot] = "content"
  end
  put(act.homes, sub, where and seq .. where or nil)
end

function lots.stand_in_heads(sub)
  local home = get(act.homes, sub)
  if home and string.sub(home, 14) ~= "h" then
    local head, tag = first(limits.queue_of(sub))
    lots.stand(sub, "h", string.sub(head, 1, 13), tag)
  end
end

-- Puts a lot's marker where it belongs, and a rate limit's lot into the refills while it has to wait.
local function settle_lot(lot, what)
  local name, units, own, lane = string.match(lot, "^([^=]+)=(%d+)(!?)@(.*)$")
  local limit = limits.of(name)
  local least, tag = first(ordered(keys.parked(lot)))
  if what == "content" then
    local waiting = ordered(keys.lots(name))
    if least then add(waiting, lot, 0) else remove(waiting, lot) end
  end
  local open = least and limits.room(limit, limits.class_of(lane), own == "!") >= tonumber(units)
  local shown, show = get(hash(keys.markers), lot), open and string.sub(least, 1, 13) or nil
  if shown ~= show then
    local heads = ordered(keys.heads(lane))
    if shown then remove(heads, shown .. "m" .. lot) end
    if show then add(heads, show .. "m" .. lot, tag) end
    put(hash(keys.markers), lot, show)
  end
  if get(limit, "kind") == "rate" then
    -- what the burst can never give (it was lowered) is not worth coming back for
    local waits_for_refill = least and not open and not get(limit, "paused") and tonumber(units) <= number(limit, "burst")
    if waits_for_refill then
      add(ordered(keys.refills), lot, limits.refilled_at(limit, tonumber(units)))
      start_at(limits.refilled_at(limit, tonumber(units)))
    else
      remove(ordered(keys.refills), lot)
    end
  end
end

function lots.settle()
  for name in pairs(act.touched_limits) do
    for _, lot in ipairs(members(ordered(keys.lots(name)))) do act.touched_lots[lot] = act.touched_lots[lot] or "room" end
  end
  local touched = act.touched_lots
  act.touched_limits, act.touched_lots = {}, {}
  for lot, what in pairs(touched) do settle_lot(lot, what) end
end
