-- Which workers can run which tasks (docs/scheduler.md, Audiences).
--
-- A profile is what a worker serves: task types and capabilities. The audience of a route is the set of profiles that serve it;
-- routes with the same audience share their heads, so a claim looks at as many of them as there are kinds of workers, not types.
--
-- Profiles and audiences change rarely. They are cached from call to call under the version in meta. An act that changes them caches
-- them under a new version, once everything is written.

local MOST_NAMESPACES = 64 -- whose registries are kept
local KEPT = {registries = {}, count = 0} -- by prefix

local function listed(text)
  local set = {}
  for name in string.gmatch(text, "[^,]+") do set[name] = true end
  return set
end

local function parsed(text)
  local served, capabilities = names.cut_route(text)
  return {types = served ~= "*" and listed(served) or nil, capabilities = listed(capabilities)}
end

local function note_audience(registry, audience, text)
  local ids, has = {}, {}
  for profile in string.gmatch(text, "%d+") do
    ids[#ids + 1] = profile
    has[profile] = true
    local served = registry.of_profile[profile]
    if served then served[#served + 1] = audience end
  end
  registry.members[audience], registry.has[audience], registry.texts[audience], registry.by_text[text] = ids, has, text, audience
end

local function read_registry(version)
  local registry = {version = version, profiles = {}, ids = {}, of_profile = {}, members = {}, has = {}, texts = {}, by_text = {}}
  local flat = call("HGETALL", keys.profiles)
  for i = 1, #flat, 2 do
    local id = string.match(flat[i], "^t:(%d+)$")
    if id then
      registry.profiles[id], registry.of_profile[id] = parsed(flat[i + 1]), {}
      registry.ids[#registry.ids + 1] = id
    end
  end
  table.sort(registry.ids, function(a, b) return tonumber(a) < tonumber(b) end)
  flat = call("HGETALL", keys.audiences)
  for i = 1, #flat, 2 do note_audience(registry, flat[i], flat[i + 1]) end
  return registry
end

local function keep(registry)
  if KEPT.count >= MOST_NAMESPACES then KEPT.registries, KEPT.count = {}, 0 end
  if not KEPT.registries[keys.prefix] then KEPT.count = KEPT.count + 1 end
  KEPT.registries[keys.prefix] = registry
end

-- Profiles and audiences as this act sees them.
function audiences.registry()
  if act.registry then return act.registry end
  local version = get(act.meta, "audience_version") or "0"
  local registry = KEPT.registries[keys.prefix]
  if not registry or registry.version ~= version then
    registry = read_registry(version)
    if not act.changes_registry then keep(registry) end
  end
  act.registry = registry
  return registry
end

-- The registry of this act, to be changed: no other act finds it if this one breaks. A version is never given twice.
local function changing()
  local registry = audiences.registry()
  if not act.changes_registry then
    act.changes_registry = true
    if KEPT.registries[keys.prefix] then KEPT.registries[keys.prefix], KEPT.count = nil, KEPT.count - 1 end
    local instant = call("TIME")
    registry.version = instant[1] .. "." .. instant[2] .. "." .. next_number("audience_changes")
    put(act.meta, "audience_version", registry.version)
  end
  return registry
end

-- The act has written everything: the registry that it changed is what the store has now.
function audiences.keep_changes()
  if act.changes_registry and act.registry then keep(act.registry) end
end

function audiences.serves(profile, route)
  local task_type, required = names.cut_route(route)
  if profile.types and not profile.types[task_type] then return false end
  for capability in string.gmatch(required, "[^,]+") do
    if not profile.capabilities[capability] then return false end
  end
  return true
end

-- The audience of exactly these profiles, given as a text in the order of their numbers.
local function audience_named(text)
  local known = audiences.registry().by_text[text]
  if known then return known end
  local audience = tostring(next_number("audience"))
  note_audience(changing(), audience, text)
  put(hash(keys.audiences), audience, text)
  return audience
end

-- The audience of a route. A route that no worker serves has an audience too, which no worker looks at.
function audiences.of(route)
  local routes = hash(keys.routes)
  local audience = get(routes, route)
  if audience then return audience end
  local registry, serving = audiences.registry(), {}
  for _, id in ipairs(registry.ids) do
    if audiences.serves(registry.profiles[id], route) then serving[#serving + 1] = id end
  end
  audience = audience_named(table.concat(serving, ","))
  put(routes, route, audience)
  tidying.note_use(audience)
  return audience
end

-- How many workers have this profile?
function audiences.workers_of(profile)
  return number(hash(keys.profiles), "n:" .. profile) or 0
end

-- Does a live worker name this type among those that it serves?
function audiences.is_type_named(task_type)
  local registry = audiences.registry()
  for _, id in ipairs(registry.ids) do
    local served = registry.profiles[id].types
    if served and served[task_type] and audiences.workers_of(id) > 0 then return true end
  end
  return false
end

function audiences.count_workers(profile, by)
  return change_count(hash(keys.profiles), "n:" .. profile, by)
end

-- How many workers serve this route?
function audiences.workers_for(route)
  local count = 0
  for _, id in ipairs(audiences.registry().members[audiences.of(route)]) do count = count + audiences.workers_of(id) end
  return count
end

-- The profile of this text, and whether it is new.
function audiences.profile(text)
  local digest, known = "i:" .. redis.sha1hex(text), hash(keys.profiles)
  local id = get(known, digest)
  if id then return id, false end
  id = tostring(next_number("profile"))
  put(known, digest, id)
  put(known, "t:" .. id, text)
  local registry = changing()
  registry.profiles[id], registry.of_profile[id] = parsed(text), {}
  registry.ids[#registry.ids + 1] = id
  return id, true
end

-- Puts a profile among these, by its number: at the end, unless a newer one joined first. Returns them as a text.
local function insert_profile(ids, id)
  local at = #ids + 1
  while at > 1 and tonumber(ids[at - 1]) > tonumber(id) do at = at - 1 end
  table.insert(ids, at, id)
  return table.concat(ids, ",")
end

local function without(list, one)
  local others = {}
  for _, other in ipairs(list) do
    if other ~= one then others[#others + 1] = other end
  end
  return others
end

-- Lets profile `id` find `route`, which it serves: the new audience of the route, or nil when it has the profile already.
function audiences.move_route(route, id)
  local registry, routes = audiences.registry(), hash(keys.routes)
  local before = get(routes, route)
  if not before or registry.has[before][id] then return nil end
  local audience = audience_named(insert_profile(without(registry.members[before], id), id))
  put(routes, route, audience)
  tidying.note_use(audience)
  return audience
end

-- Profile `id` serves every route of this audience: it joins, and no sub-queue has to be moved.
function audiences.extend(audience, id)
  local registry = changing()
  local text, served = insert_profile(registry.members[audience], id), registry.of_profile[id]
  registry.has[audience][id], served[#served + 1] = true, audience
  registry.by_text[registry.texts[audience]] = nil
  registry.texts[audience], registry.by_text[text] = text, audience
  put(hash(keys.audiences), audience, text)
end

-- No worker has had this profile for a long time.
function audiences.forget_profile(id)
  local registry, known = changing(), hash(keys.profiles)
  put(known, "i:" .. redis.sha1hex(get(known, "t:" .. id)), nil)
  for _, field in ipairs({"t:", "n:", "j:", "z:"}) do put(known, field .. id, nil) end
  for _, audience in ipairs(registry.of_profile[id]) do
    put(hash(keys.audiences), audience, table.concat(without(registry.members[audience], id), ","))
  end
  act.registry = nil -- nothing else in this act needs it, and the next act reads it again
end

-- No route has this audience.
function audiences.forget(audience)
  local registry = changing()
  for _, member in ipairs(registry.members[audience] or NONE) do
    registry.of_profile[member] = without(registry.of_profile[member] or NONE, audience)
  end
  local text = registry.texts[audience]
  if text then registry.by_text[text] = nil end
  registry.members[audience], registry.has[audience], registry.texts[audience] = nil, nil, nil
  put(hash(keys.audiences), audience, nil)
end
