-- Limits: what is allowed, what is used, what is held back.

-- A paused type is a limit without room; it exists only in the list of paused types.
local function type_limit(name)
  local paused = get(hash(keys.paused), string.sub(name, 2)) ~= nil
  return {known = {kind = "type", paused = paused}, whole = true}
end

local function read(name)
  local key = keys.limit(name)
  local view = string.sub(name, 1, 1) == "~" and type_limit(name) or whole(key) or hash(key)
  hashes.read_numbers(view, "limit", "used") -- once: they are used often
  view.name, act.limit_views[name] = name, view
  return view
end

-- nil when it is not defined; of a limit all fields are known. Who holds its units is in another hash: there may be many, and each
-- field that is read here would be searched for among them.
function limits.of(name)
  local view = act.limit_views[name] or read(name)
  return view.known.kind and view or nil
end

function limits.is_paused_type(sub)
  if number(act.meta, "paused_types") == nil then return false end
  return get(limits.of(names.type_limit(subs.task_type(sub))), "paused") and true or false
end

-- Units that got free in this act: as many idle workers may be woken.
function limits.note_freed(name, units)
  act.freed[name] = (act.freed[name] or 0) + units
end

-- Its room has changed: tasks and acquires that wait for it are considered before this act ends.
function limits.touch(name)
  act.touched_lists[names.lots_of(name)] = true
  act.room_changed[name] = true
end

-- The use of a limit has changed, and was at most `most`. If a tier had room all the time, what waits for tiers lacks another one.
local function use_changed(need, limit, most)
  local known = limit.known
  if need.tier and known.limit > most and not (known.hold or known.kept0 or known.kept1 or known.kept2) then
    act.room_changed[need.name] = true
  else
    limits.touch(need.name)
  end
end

local function read_needs(text)
  local list = {}
  for name, units in string.gmatch(text, "([^=,]+)=(%d+)") do
    list[#list + 1] = {name = name, units = tonumber(units), tier = tiers.name_of(name)}
  end
  return list
end

-- "a=1,tier:b=1" -> {{name = "a", units = 1}, {name = "tier:b", units = 1, tier = "b"}}
function limits.needs(text)
  return memo.of("needs", text, read_needs)
end

-- The units of `name` in a list of needs; nil when it is not in the list.
function limits.units_of(list, name)
  for _, need in ipairs(list) do
    if need.name == name then return need.units end
  end
end

-- Units that are kept for waiting tasks of this priority or a better one, for which other units are being taken back (relief.lua): tasks
-- behind them would take these units, and the others would be free in vain.
function limits.kept(limit, class)
  local known = limit.known
  local kept = known.kept0 or 0
  if class > 0 then kept = kept + (known.kept1 or 0) end
  if class > 1 then kept = kept + (known.kept2 or 0) end
  return kept
end

-- What `limit` has for a sub-queue of priority `class`; the owner of the hold on it is not held back. Acts ask this more often than
-- anything else, so it reads the fields directly: all of them are known.
function limits.room(limit, class, is_owner)
  local known = limit.known
  if known.paused then return 0 end
  local kind, hold = known.kind, known.hold
  if kind == "type" then return math.huge end
  if kind == "rate" then return rates.room(limit) end
  local free = known.limit - (known.used or 0)
  if hold and not is_owner and class >= subs.class(hold) then free = free - known.hold_units end
  if known.kept0 or known.kept1 or known.kept2 then free = free - limits.kept(limit, class) end
  return free
end

-- The units it has when none are in use. A paused task type has none.
function limits.size_of(limit) return number(limit, "limit") or number(limit, "burst") or 0 end

-- Why this many units can never be taken; `limit` is nil if the caller would define it.
function limits.why_never(limit, most, units)
  if limit and get(limit, "kind") == "rate" then
    local never = int(units) .. " can never be taken at once; give it a burst of at least " .. int(units)
    return "the rate has a burst of " .. int(most) .. ": " .. never
  end
  return "the limit has " .. int(most) .. " units: " .. int(units) .. " can never be free"
end

-- What this sub-queue lacks, nil when it can start. Of several limits without room the smallest: where many share a large limit,
-- each waits at its own, and is not looked at whenever the large one has room.
function limits.blocking(sub)
  if limits.is_paused_type(sub) then return {name = names.type_limit(subs.task_type(sub)), units = 1} end
  local class, lacking, least = subs.class(sub), nil, nil
  local needs = subs.needs(sub)
  for i = 1, #needs do
    local need = needs[i]
    local limit = limits.of(need.name)
    if limits.room(limit, class, limit.known.hold == sub) < need.units then
      local size = limits.size_of(limit)
      if not least or size < least then lacking, least = need, size end
    end
  end
  return lacking
end

function limits.forget(view)
  metrics.limit_ended(view)
  for field in pairs(whole(view.key).known) do put(view, field, nil) end
  remove(ordered(keys.limits), view.name)
end

-- A limit made by a submit ends when nothing holds it, waits for it or declares it.
local function end_group(view)
  if not view.known.group or (number(view, "used") or 0) > 0 or get(view, "waiting") or get(view, "delayed") then return end
  if not get(view, "waiters") then limits.forget(view) end
end

-- Counts the tasks that need a limit and wait for their turn, or (`delayed`) for their time.
function limits.count(text, by, field)
  for _, need in ipairs(limits.needs(text)) do
    local view = limits.of(need.name)
    if view then
      change_count(view, field, by)
      if by < 0 then act.left_limits[need.name] = view end
    end
  end
end

function limits.end_groups()
  for _, view in pairs(act.left_limits) do end_group(view) end
end

function limits.take(holder, list)
  for i = 1, #list do
    local need = list[i]
    local limit = limits.of(need.name)
    local known = limit.known
    if known.kind == "rate" then
      rates.take(limit, need.units)
    else
      put(limit, "used", (known.used or 0) + need.units)
      put(hash(keys.holders(need.name)), holder, need.units)
    end
    if known.deferred then put(limit, "deferred", nil) end
    use_changed(need, limit, known.used)
    if act.freed[need.name] then limits.note_freed(need.name, -need.units) end -- taken again at once
  end
end

function limits.free(holder, list)
  for i = 1, #list do
    local need = list[i]
    local limit, holders = limits.of(need.name), hash(keys.holders(need.name))
    -- by the lease, not by the kind, where the limit may have been a rate when the units were taken
    local is_known = limit and limit.known.kind == "slots" and not limit.known.redefined and need.units
    local held = is_known or limit and number(holders, holder)
    if held then
      local used = limit.known.used - held
      put(limit, "used", used)
      if limit.known.lowered and used <= (limit.known.limit or used) then put(limit, "lowered", nil) end
      put(holders, holder, nil)
      use_changed(need, limit, used + held)
      limits.note_freed(need.name, held)
      act.left_limits[need.name] = limit
    end
  end
end

function limits.define(name, kind, limit, interval, burst)
  limits.of(name)
  local view = act.limit_views[name]
  local was = get(view, "kind")
  if was and was ~= kind then
    -- leases up to this fence took their units under the other kind: for the doctor
    put(view, "redefined", number(act.meta, "fence") or 0)
    for _, lot in ipairs(lots.of(name)) do remove(ordered(keys.refills), lot) end
  end
  if was == "rate" and kind == "rate" then rates.rescale(view, tonumber(interval), tonumber(burst)) end
  put(view, "kind", kind)
  put(view, "limit", kind == "slots" and tonumber(limit) or nil)
  put(view, "interval", kind == "rate" and tonumber(interval) or nil)
  put(view, "burst", kind == "rate" and tonumber(burst) or nil)
  if kind == "slots" then put(view, "tat", nil) end
  -- only a lowered limit may have more in use than it allows: for the doctor
  put(view, "lowered", kind == "slots" and (number(view, "used") or 0) > tonumber(limit) and "1" or nil)
  add(ordered(keys.limits), name, 0)
  put(view, "group", nil) -- it was made by a submit, and belongs to an operator now
  holds.review(act.instant)
  limits.touch(name)
  queues.reindex()
  act.freed[name] = math.max(0, limits.room(view, 0, true))
end

-- What people see of it. `waiting`: queued tasks that need it, and acquires.
function limits.shown(name)
  local view = limits.of(name)
  return {
    name = name, kind = get(view, "kind"), most = limits.size_of(view), used = number(view, "used") or 0,
    waiting = (number(view, "waiting") or 0) + (number(view, "waiters") or 0), room = limits.room(view, 0, true),
    paused = get(view, "paused") ~= nil, shared = get(view, "shared") ~= nil, interval = number(view, "interval"), hold = get(view, "hold"),
  }
end
