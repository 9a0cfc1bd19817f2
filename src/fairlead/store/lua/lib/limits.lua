-- Limits: what is allowed, what is used, what is held back.

local hash, load_fields, get, number, put = hashes.hash, hashes.load_fields, hashes.get, hashes.number, hashes.put
local ordered, remove, add, members = sets.ordered, sets.remove, sets.add, sets.members

local LIMIT_FIELDS = {
  "kind", "limit", "used", "paused", "interval", "burst", "tat", "hold", "hold_units", "with", "caps", "lowered",
}

-- nil when nobody defined it.
function limits.of(name)
  local view = act.limit_views[name]
  if view == nil then
    view = load_fields(hash(keys.limit(name)), LIMIT_FIELDS)
    view.name = name
    act.limit_views[name] = view
  end
  return get(view, "kind") and view or nil
end

-- Its room has changed: what waits for it must be looked at before this act ends.
function limits.touch(name)
  act.touched_limits[name] = true
end

-- "a=1,b=24" -> {{name = "a", units = 1}, ...}
function limits.needs(text)
  if text == "" then return NONE end
  local list = act.needs_cache[text]
  if not list then
    list = {}
    for name, units in string.gmatch(text, "([^=,]+)=(%d+)") do
      list[#list + 1] = {name = name, units = tonumber(units)}
    end
    act.needs_cache[text] = list
  end
  return list
end

local CLASSES = {["0"] = 0, ["1"] = 1, ["2"] = 2}

-- What the name of a sub-queue says; taken apart once per act.
local function parts_of(sub)
  local parts = act.sub_parts[sub]
  if not parts then
    local lane, needed = string.match(sub, "^([^|]*)|(.*)$")
    parts = {lane = lane, needs = limits.needs(needed), queue = ordered(keys.queue(sub))}
    act.sub_parts[sub] = parts
  end
  return parts
end

function limits.place_of(sub) return string.sub(sub, 1, 2) end
function limits.class_of(sub) return CLASSES[string.sub(sub, 1, 1)] end
function limits.lane_of(sub) return parts_of(sub).lane end
function limits.needs_of(sub) return parts_of(sub).needs end
function limits.queue_of(sub) return parts_of(sub).queue end

function limits.heads_of(sub)
  local parts = parts_of(sub)
  local heads = parts.heads
  if not heads then
    heads = ordered(keys.heads(parts.lane))
    parts.heads = heads
  end
  return heads
end

-- What `limit` has for a sub-queue of priority `class`; the owner of the hold on it is not held back.
function limits.room(limit, class, is_owner)
  if get(limit, "paused") then return 0 end
  if get(limit, "kind") == "rate" then return rates.room(limit) end
  local free = number(limit, "limit") - (number(limit, "used") or 0)
  local hold = get(limit, "hold")
  if hold and not is_owner and class >= limits.class_of(hold) then free = free - number(limit, "hold_units") end
  return free
end

-- The instant in ms at which a rate limit has `units` again.
function limits.refilled_at(limit, units)
  return rates.refilled_at(limit, units)
end

-- The first of its limits, by name, that has no room for this sub-queue; nil when it can start.
function limits.blocking(sub)
  for _, need in ipairs(limits.needs_of(sub)) do
    local limit = limits.of(need.name)
    if limits.room(limit, limits.class_of(sub), get(limit, "hold") == sub) < need.units then return need end
  end
end

function limits.take(holder, list)
  for _, need in ipairs(list) do
    local limit = limits.of(need.name)
    if get(limit, "kind") == "rate" then
      rates.take(limit, need.units)
    else
      put(limit, "used", (number(limit, "used") or 0) + need.units)
      put(limit, "held:" .. holder, need.units)
    end
    limits.touch(need.name)
    if act.freed_limits[need.name] then act.freed_limits[need.name] = act.freed_limits[need.name] - 1 end -- taken again at once
  end
end

function limits.free(holder, list)
  for _, need in ipairs(list) do
    local limit = limits.of(need.name)
    -- asked of the lease itself, not of the kind: the limit may have been a rate when the units were taken
    local held = limit and number(limit, "held:" .. holder)
    if held then
      local used = number(limit, "used") - held
      put(limit, "used", used)
      if get(limit, "lowered") and used <= (number(limit, "limit") or used) then put(limit, "lowered", nil) end
      put(limit, "held:" .. holder, nil)
      limits.touch(need.name)
      act.freed_limits[need.name] = (act.freed_limits[need.name] or 0) + 1
    end
  end
end

function limits.define(name, kind, limit, interval, burst)
  limits.of(name)
  local view = act.limit_views[name]
  local was = get(view, "kind")
  if was and was ~= kind then
    -- leases up to this fence took their units under the other kind: the doctor asks
    put(view, "redefined", number(act.meta, "fence") or 0)
    for _, lot in ipairs(members(ordered(keys.lots(name)))) do remove(ordered(keys.refills), lot) end
  end
  if was == "rate" and kind == "rate" then rates.rescale(view, tonumber(interval), tonumber(burst)) end
  put(view, "kind", kind)
  put(view, "limit", kind == "slots" and tonumber(limit) or nil)
  put(view, "interval", kind == "rate" and tonumber(interval) or nil)
  put(view, "burst", kind == "rate" and tonumber(burst) or nil)
  if kind == "slots" then put(view, "tat", nil) end
  -- more in use than allowed is right for a lowered limit, and only there: the doctor asks
  put(view, "lowered", kind == "slots" and (number(view, "used") or 0) > tonumber(limit) and "1" or nil)
  add(ordered(keys.limits), name, 0)
  holds.end_impossible()
  limits.touch(name)
  queues.settle()
  act.freed_limits[name] = math.max(0, limits.room(view, 0, true))
end
