-- Texts with parts, only made and cut here; fairlead.store.names is the twin in Python.
--
--   route      type;capability,capability                    who can run it: type and required capabilities
--   sub-queue  place:route|limit=units,limit=units           tasks of one place, route and needs
--   lane       place:audience                                the heads of sub-queues that the same profiles serve
--   lot        limit=units@lane, or limit=units!@lane        sub-queues of a lane that lack these units; "!": of the hold's owner;
--              limit=units,limit=units@lane                  ... or one of several that many sub-queues need
--   member     seq (13 digits) and what it is about          of queues, heads and lots: equal scores sort by seq
--   waiter     seq, its place, units ":" lease id              an acquire that waits, in the line of its limit
--   position   seq, "h" or "p", then the lane or the lot     where a sub-queue is, and by which head
--   idle line  profile, then "o" (open) or "r" (only its reserve is free)

function names.member(seq, about)
  return string.format("%013d", seq) .. about
end

function names.seq_of(member)
  return string.sub(member, 1, 13)
end

-- What a member is about: a task, a sub-queue or a lot.
function names.about(member)
  return string.sub(member, 14)
end

function names.route(task_type, capabilities)
  return task_type .. ";" .. capabilities
end

function names.sub_queue(place, route, needs)
  return place .. ":" .. route .. "|" .. needs
end

-- Its route, and its needs as a text.
function names.cut_sub_queue(sub)
  return string.match(sub, "^..:([^|]*)|(.*)$")
end

-- Its type, and its capabilities as a text.
function names.cut_route(route)
  return string.match(route, "^([^;]*);(.*)$")
end

function names.place_of(text)
  return string.sub(text, 1, 2)
end

function names.lane(place, audience)
  return place .. ":" .. audience
end

function names.audience_of(lane)
  return string.sub(lane, 4)
end

function names.need(limit, units)
  return limit .. "=" .. int(units)
end

function names.lot(needs, is_owner, lane)
  return needs .. (is_owner and "!" or "") .. "@" .. lane
end

local function cut_lot(lot)
  local needed, own, lane = string.match(lot, "^([^!@]+)(!?)@(.*)$")
  local parts = {needs = limits.needs(needed), lists = {}, is_owner = own == "!", lane = lane, class = subs.class(lane)}
  for _, need in ipairs(parts.needs) do -- in the order of their names
    local list = names.lots_of(need.name)
    if parts.lists[#parts.lists] ~= list then parts.lists[#parts.lists + 1] = list end
  end
  return parts
end

-- What a lot waits for and in which lists of lots it is, whether it is of the owner of the hold, its lane and the class of that.
function names.lot_parts(lot)
  return memo.of("lots", lot, cut_lot)
end

names.TIERS = "tier:" -- begins the limit of a tier

-- What the lots of a limit are listed as.
function names.lots_of(limit)
  return string.sub(limit, 1, #names.TIERS) == names.TIERS and names.TIERS or limit
end

function names.position(seq, kind, where)
  return seq .. kind .. where
end

-- The seq of the head, "h" (heads) or "p" (parked), and the lane or the lot.
function names.cut_position(position)
  return string.sub(position, 1, 13), string.sub(position, 14, 14), string.sub(position, 15)
end

function names.waiter(seq, place, units, id)
  return names.member(seq, place .. int(units) .. ":" .. id)
end

-- Its place, units and lease id.
function names.cut_waiter(member)
  local units, id = string.match(member, "^(%d+):(.*)$", 16)
  return string.sub(member, 14, 15), tonumber(units), id
end

-- The limit that represents the pause of a task type: it has room for all tasks, or for none.
function names.type_limit(task_type)
  return "~" .. task_type
end

function names.idle_line(profile, open)
  return profile .. (open and "o" or "r")
end

-- The profile, and whether its workers have open room.
function names.cut_idle_line(line)
  return string.sub(line, 1, -2), string.sub(line, -1) == "o"
end
