-- The position of each sub-queue: in the heads of its lane, or parked at a limit without room.
--
-- A lot gathers the sub-queues of a lane that last lacked the same units of a limit. A full limit hides them all, because the
-- lot's one marker is then not in the heads; room shows them again with one insertion, however many they are.

local WIDE = 8 -- sub-queues of several limits
local MOST_MARKERS = 200 -- read at once

-- The lots in which something lacks units of this limit. Those of all tiers are in one list: tiers are nested, so what waits for a long
-- one names the shorter ones too, and every act that changes one of them changes the shortest.
function lots.of(name)
  local list = members(ordered(keys.lots(names.lots_of(name))))
  if not tiers.is_limit(name) then return list end
  local own = {}
  for _, lot in ipairs(list) do
    if limits.units_of(names.lot_parts(lot).needs, name) then own[#own + 1] = lot end
  end
  return own
end

-- Those of all tiers.
function lots.of_tiers()
  return members(ordered(keys.lots(names.TIERS)))
end

-- Many sub-queues need it, each together with other limits.
local function is_wide(need)
  return need.tier or (number(limits.of(need.name), "sub_queues") or 0) >= WIDE
end

-- What a sub-queue that lacks `lacking` waits for. Where many need the same few limits, and each another one, they wait for those few
-- together: otherwise each would be moved from one to the other whenever one of them has room.
local function waits_for(lacking, sub)
  if not subs.may_overlap(sub) and lacking.tier then return subs.needed(sub) end -- it needs tiers only, which are wide
  if not is_wide(lacking) then return names.need(lacking.name, lacking.units) end
  local wide = {}
  for _, need in ipairs(subs.needs(sub)) do -- in the order of their names
    if need.name == lacking.name or is_wide(need) then wide[#wide + 1] = names.need(need.name, need.units) end
  end
  return table.concat(wide, ",")
end

-- The owner of a hold has more room than others where it holds, so it never shares a lot of several limits with them.
local function has_hold(sub)
  for _, need in ipairs(subs.needs(sub)) do
    if limits.of(need.name).known.hold == sub then return true end
  end
  return false
end

local function lot_of(lacking, sub)
  local needs = has_hold(sub) and names.need(lacking.name, lacking.units) or waits_for(lacking, sub)
  return names.lot(needs, get(limits.of(lacking.name), "hold") == sub, subs.lane(sub))
end

local function leave(sub, position)
  local seq, kind, where = names.cut_position(position)
  if kind == "h" then
    remove(ordered(keys.heads(where)), seq .. "s" .. sub)
  else
    remove(ordered(keys.parked(where)), seq .. sub)
    act.touched_lots[where] = "content"
  end
end

-- Moves a sub-queue with the head (seq, tag) to its position: into the heads, or to the limit that it lacks.
function lots.place(sub, seq, tag, lacking)
  local position = get(hash(keys.home), sub)
  if position then leave(sub, position) end
  if lacking then
    local lot = lot_of(lacking, sub)
    insert(ordered(keys.parked(lot)), seq .. sub, tag)
    act.touched_lots[lot] = "content"
    put(hash(keys.home), sub, names.position(seq, "p", lot))
  else
    local lane = subs.lane(sub)
    insert(ordered(keys.heads(lane)), seq .. "s" .. sub, tag)
    put(hash(keys.home), sub, names.position(seq, "h", lane))
  end
end

-- A sub-queue without a head has no position.
function lots.remove(sub)
  leave(sub, get(hash(keys.home), sub))
  put(hash(keys.home), sub, nil)
end

-- Shows a parked sub-queue: the next claim considers it again.
function lots.unpark(sub)
  local position = get(hash(keys.home), sub)
  if not position then return end
  local _, kind = names.cut_position(position)
  if kind == "p" then
    local head, tag = first(subs.queue(sub))
    lots.place(sub, names.seq_of(head), tag, nil)
  end
end

-- The instant at which time alone gives a lot what it lacks; nil when it waits for a lease to end, or for what is never given: a paused
-- rate, or more than a burst that was lowered.
local function refilled_at(lacking)
  local latest
  for _, need in ipairs(lacking) do
    local limit = limits.of(need.name)
    local may_come = get(limit, "kind") == "rate" and not get(limit, "paused") and need.units <= number(limit, "burst")
    if not may_come then return nil end
    latest = math.max(latest or 0, rates.refilled_at(limit, need.units))
  end
  return latest
end

local function watch_refill(lot, lacking)
  local instant = #lacking > 0 and refilled_at(lacking)
  if instant then
    add(ordered(keys.refills), lot, instant)
    start_at(instant)
  else
    remove(ordered(keys.refills), lot)
  end
end

local function lacking_of(parts)
  local lacking = {}
  for _, need in ipairs(parts.needs) do
    if limits.room(limits.of(need.name), parts.class, parts.is_owner) < need.units then lacking[#lacking + 1] = need end
  end
  return lacking
end

-- Is there room for the first of a lot, and is one of its limits a rate?
local function look_at(parts)
  local has_room, has_rate, needs = true, false, parts.needs
  for i = 1, #needs do
    local need = needs[i]
    if has_room or not need.tier then -- a tier is no rate
      local limit = limits.of(need.name)
      has_rate = has_rate or limit.known.kind == "rate"
      has_room = has_room and limits.room(limit, parts.class, parts.is_owner) >= need.units
    end
  end
  return has_room, has_rate
end

-- Updates the marker of a lot, whose content has changed or only the room of one of its limits.
local function reindex_lot(lot, what)
  local parts = names.lot_parts(lot)
  local has_room, has_rate = look_at(parts)
  local shown = get(hash(keys.markers), lot)
  if what == "room" and not has_rate and (shown ~= nil) == has_room then return end
  local least, tag = first(ordered(keys.parked(lot)))
  for _, name in ipairs(what == "content" and parts.lists or NONE) do
    local list = ordered(keys.lots(name))
    if least then add(list, lot, 0) else remove(list, lot) end
  end
  local show = least and has_room and names.seq_of(least) or nil
  if shown ~= show then
    local heads = ordered(keys.heads(parts.lane))
    if shown then remove(heads, shown .. "m" .. lot) end
    if show then add(heads, show .. "m" .. lot, tag) end
    put(hash(keys.markers), lot, show)
  end
  if has_rate then watch_refill(lot, least and lacking_of(parts) or NONE) end
end

-- Reads the markers of several lots at once.
local function load_markers(touched)
  local markers, unread = hash(keys.markers), {}
  for lot in pairs(touched) do
    if #unread < MOST_MARKERS and markers.known[lot] == nil then unread[#unread + 1] = lot end
  end
  if #unread > 1 then load_fields(markers, unread) end
end

function lots.reindex()
  local touched = act.touched_lots
  for name in pairs(act.touched_lists) do
    for _, lot in ipairs(members(ordered(keys.lots(name)))) do touched[lot] = touched[lot] or "room" end
  end
  act.touched_lists, act.touched_lots = {}, {}
  load_markers(touched)
  for lot, what in pairs(touched) do reindex_lot(lot, what) end
end
