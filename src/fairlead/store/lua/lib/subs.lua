-- Sub-queues by name: its parts, cut once per act.

local CLASSES = {["0"] = 0, ["1"] = 1, ["2"] = 2}

local function parts_of(sub)
  local parts = act.sub_parts[sub]
  if not parts then
    local route, needed = names.cut_sub_queue(sub)
    local list = limits.needs(needed)
    parts = {route = route, needed = needed, needs = list, queue = ordered(keys.queue(sub)), may_overlap = overlap.is_possible(list)}
    act.sub_parts[sub] = parts
  end
  return parts
end

-- Names are needed several times for every task of a batch, and making one takes longer than looking it up.
local function within(tables, key)
  local found = tables[key]
  if not found then
    found = {}
    tables[key] = found
  end
  return found
end

function subs.route_of(task_type, capabilities)
  local routes = within(act.route_names, task_type)
  local route = routes[capabilities]
  if not route then
    route = names.route(task_type, capabilities)
    routes[capabilities] = route
  end
  return route
end

-- The sub-queue of task `t` (a record) in `place`.
function subs.of(place, t)
  local facts = t.known.facts
  local route, needed = subs.route_of(facts.type, facts.capabilities or ""), facts.limits or ""
  local found = within(within(act.sub_names, place), route)
  local sub = found[needed]
  if not sub then
    sub = names.sub_queue(place, route, needed)
    found[needed] = sub
  end
  return sub
end

function subs.class(text) return CLASSES[string.sub(text, 1, 1)] end
function subs.route(sub) return parts_of(sub).route end
function subs.needs(sub) return parts_of(sub).needs end
function subs.needed(sub) return parts_of(sub).needed end
function subs.may_overlap(sub) return parts_of(sub).may_overlap end
function subs.queue(sub) return parts_of(sub).queue end

-- The lane of its head when it can start, by the current audience of its route.
function subs.lane(sub)
  return names.lane(names.place_of(sub), audiences.of(parts_of(sub).route))
end

function subs.task_type(sub)
  return (names.cut_route(parts_of(sub).route))
end
