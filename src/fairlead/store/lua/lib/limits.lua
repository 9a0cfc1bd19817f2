-- Limits: what is allowed, what is used, what is held back.
--
-- USES     begin ordered

local LIMIT_FIELDS = {
  "kind", "limit", "used", "paused", "interval", "burst", "tat", "hold", "hold_units", "with", "caps", "lowered",
}
local limit_views, touched_limits = {}, {}
local freed_limits = {} -- limit -> leases that ended in this act: so many idle workers are worth waking

-- nil when nobody defined it.
local function limit_of(name)
  local view = limit_views[name]
  if view == nil then
    view = load_fields(hash(limit_key(name)), LIMIT_FIELDS)
    view.name = name
    limit_views[name] = view
  end
  return get(view, "kind") and view or nil
end

-- Its room has changed: what waits for it must be looked at before this act ends.
local function touch_limit(name)
  touched_limits[name] = true
end

local needs_cache = {}

-- "a=1,b=24" -> {{name = "a", units = 1}, ...}
local function needs(text)
  if text == "" then return NONE end
  local list = needs_cache[text]
  if not list then
    list = {}
    for name, units in string.gmatch(text, "([^=,]+)=(%d+)") do
      list[#list + 1] = {name = name, units = tonumber(units)}
    end
    needs_cache[text] = list
  end
  return list
end

local CLASSES = {["0"] = 0, ["1"] = 1, ["2"] = 2}
local sub_parts = {}

-- What the name of a sub-queue says; taken apart once per act.
local function parts_of(sub)
  local parts = sub_parts[sub]
  if not parts then
    local lane, limits = string.match(sub, "^([^|]*)|(.*)$")
    parts = {lane = lane, needs = needs(limits), queue = ordered(queue_key(sub))}
    sub_parts[sub] = parts
  end
  return parts
end

local function place_of(sub) return string.sub(sub, 1, 2) end
local function class_of(sub) return CLASSES[string.sub(sub, 1, 1)] end
local function lane_of(sub) return parts_of(sub).lane end
local function needs_of(sub) return parts_of(sub).needs end
local function queue_of(sub) return parts_of(sub).queue end

local function heads_of(sub)
  local parts = parts_of(sub)
  local heads = parts.heads
  if not heads then
    heads = ordered(heads_key(parts.lane))
    parts.heads = heads
  end
  return heads
end

-- What `limit` has for a sub-queue of priority `class`; the owner of the hold on it is not held back.
local function room(limit, class, is_owner)
  if get(limit, "paused") then return 0 end
  if get(limit, "kind") == "rate" then
    local interval, burst = number(limit, "interval"), number(limit, "burst")
    local now_us = instant * 1000
    local tat = math.max(number(limit, "tat") or 0, now_us)
    return math.min(burst, math.floor((now_us + burst * interval - tat) / interval))
  end
  local free = number(limit, "limit") - (number(limit, "used") or 0)
  local hold = get(limit, "hold")
  if hold and not is_owner and class >= class_of(hold) then free = free - number(limit, "hold_units") end
  return free
end

-- The instant in ms at which a rate limit has `units` again.
local function refilled_at(limit, units)
  local interval, burst = number(limit, "interval"), number(limit, "burst")
  return math.ceil(((number(limit, "tat") or 0) + (units - burst) * interval) / 1000)
end

-- The first of its limits, by name, that has no room for this sub-queue; nil when it can start.
local function blocking(sub)
  for _, need in ipairs(needs_of(sub)) do
    local limit = limit_of(need.name)
    if room(limit, class_of(sub), get(limit, "hold") == sub) < need.units then return need end
  end
end

local function take_units(holder, list)
  for _, need in ipairs(list) do
    local limit = limit_of(need.name)
    if get(limit, "kind") == "rate" then
      put(limit, "tat", math.max(number(limit, "tat") or 0, instant * 1000) + need.units * number(limit, "interval"))
    else
      put(limit, "used", (number(limit, "used") or 0) + need.units)
      put(limit, "held:" .. holder, need.units)
    end
    touch_limit(need.name)
    if freed_limits[need.name] then freed_limits[need.name] = freed_limits[need.name] - 1 end -- taken again at once
  end
end

local function free_units(holder, list)
  for _, need in ipairs(list) do
    local limit = limit_of(need.name)
    -- asked of the lease itself, not of the kind: the limit may have been a rate when the units were taken
    local held = limit and number(limit, "held:" .. holder)
    if held then
      local used = number(limit, "used") - held
      put(limit, "used", used)
      if get(limit, "lowered") and used <= (number(limit, "limit") or used) then put(limit, "lowered", nil) end
      put(limit, "held:" .. holder, nil)
      touch_limit(need.name)
      freed_limits[need.name] = (freed_limits[need.name] or 0) + 1
    end
  end
end
