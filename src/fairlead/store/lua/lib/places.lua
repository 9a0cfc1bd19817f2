-- Where each sub-queue stands: in the heads of its lane, or parked at a limit without room.
--
-- A lot ("limit=units@lane") gathers the sub-queues of a lane that last lacked the same units of a limit. A full limit hides
-- them all, because the lot's one marker is then not in the heads; room shows them again with one insertion.
--
-- USES     limits

local homes = hash(home_key)
local touched_lots = {}

local function ticket(seq, id)
  return string.format("%013d", seq) .. id
end

-- The owner of a hold has more room than others, so it never shares a lot with them ("!").
local function lot_name(need, sub)
  local own = get(limit_of(need.name), "hold") == sub and "!" or ""
  return need.name .. "=" .. int(need.units) .. own .. "@" .. lane_of(sub)
end

local function leave(sub, home)
  local seq, where = string.sub(home, 1, 13), string.sub(home, 14)
  if where == "h" then
    remove(heads_of(sub), seq .. "s" .. sub)
  else
    local lot = string.sub(where, 2)
    remove(ordered(parked_key(lot)), seq .. sub)
    touched_lots[lot] = "content"
  end
end

-- Moves a sub-queue whose head is (seq, tag) to `where`: "h", "p<lot>", or nil when it is empty.
local function stand(sub, where, seq, tag)
  local home = get(homes, sub)
  if home then leave(sub, home) end
  if where == "h" then
    insert(heads_of(sub), seq .. "s" .. sub, tag)
  elseif where then
    local lot = string.sub(where, 2)
    insert(ordered(parked_key(lot)), seq .. sub, tag)
    touched_lots[lot] = "content"
  end
  put(homes, sub, where and seq .. where or nil)
end

local function stand_in_heads(sub)
  local home = get(homes, sub)
  if home and string.sub(home, 14) ~= "h" then
    local head, tag = first(queue_of(sub))
    stand(sub, "h", string.sub(head, 1, 13), tag)
  end
end

-- Puts a lot's marker where it belongs, and a rate limit's lot into the refills while it has to wait.
local function settle_lot(lot, what)
  local name, units, own, lane = string.match(lot, "^([^=]+)=(%d+)(!?)@(.*)$")
  local limit = limit_of(name)
  local least, tag = first(ordered(parked_key(lot)))
  if what == "content" then
    local lots = ordered(lots_key(name))
    if least then add(lots, lot, 0) else remove(lots, lot) end
  end
  local open = least and room(limit, class_of(lane), own == "!") >= tonumber(units)
  local shown, show = get(hash(markers_key), lot), open and string.sub(least, 1, 13) or nil
  if shown ~= show then
    local heads = ordered(heads_key(lane))
    if shown then remove(heads, shown .. "m" .. lot) end
    if show then add(heads, show .. "m" .. lot, tag) end
    put(hash(markers_key), lot, show)
  end
  if get(limit, "kind") == "rate" then
    -- what the burst can never give (it was lowered) is not worth coming back for
    local waits_for_refill = least and not open and not get(limit, "paused") and tonumber(units) <= number(limit, "burst")
    if waits_for_refill then
      add(ordered(refills_key), lot, refilled_at(limit, tonumber(units)))
      start_at(refilled_at(limit, tonumber(units)))
    else
      remove(ordered(refills_key), lot)
    end
  end
end

local function settle_lots()
  for name in pairs(touched_limits) do
    for _, lot in ipairs(members(ordered(lots_key(name)))) do touched_lots[lot] = touched_lots[lot] or "room" end
  end
  local lots = touched_lots
  touched_limits, touched_lots = {}, {}
  for lot, what in pairs(lots) do settle_lot(lot, what) end
end
