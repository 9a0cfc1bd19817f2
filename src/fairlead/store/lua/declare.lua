-- Declare task types, limits and pipelines as the code of an application or a configuration file (`origin`) defines them. A limit is set
-- only when its declaration has changed since the last time, so that a change by an operator is kept.
--
-- ARGV     origin types_declared limits_declared pipelines clock
-- RETURNS  ok | invalid field code message | uninitialised
-- FLAGS    allow-oom

local new_types, new_limits = cmsgpack.unpack(types_declared), cmsgpack.unpack(limits_declared)

local defined = {}
for _, one in ipairs(new_limits) do defined[one.name] = true end
for _, one in ipairs(new_types) do
  for _, need in ipairs(limits.needs(one.limits)) do
    if not defined[need.name] and not limits.of(need.name) then
      local field = "tasks." .. one.name .. ".limits." .. need.name
      return types.invalid(field, "unknown_limit", "there is no such limit: declare it too, or define it first")
    end
  end
end

-- a group that a type needs no longer ends by itself
for _, one in ipairs(new_types) do
  for _, need in ipairs(limits.needs(one.limits)) do
    local limit = limits.of(need.name)
    if limit then put(limit, "group", nil) end
  end
end

for _, one in ipairs(new_limits) do
  limits.of(one.name)
  local view, field = act.limit_views[one.name], "declared:" .. origin
  if get(view, field) ~= one.text then
    -- a file overrides the code
    if origin == "file" or not get(view, "declared:file") then
      limits.define(one.name, one.kind, one.limit, one.interval, one.burst)
      tenants.share(view, one.shared == 1)
    end
    put(view, field, one.text)
  end
  if origin == "file" then add(ordered(keys.declared), one.name, 0) end
end

-- a limit that the file no longer names belongs to the code again, from its next declaration on
for _, name in ipairs(origin == "file" and members(ordered(keys.declared)) or NONE) do
  if not defined[name] then
    remove(ordered(keys.declared), name)
    if limits.of(name) then
      put(act.limit_views[name], "declared:file", nil)
      put(act.limit_views[name], "declared:code", nil)
    end
  end
end

-- A file is declared as a whole, code in parts by each application.
local function keep(kind, list)
  local known, stated = whole(keys[kind]) or hash(keys[kind]), {}
  for _, one in ipairs(list) do
    local field = origin .. ":" .. one.name
    if origin == "code" then declarations.note(kind, one.name) end
    stated[field] = true
    if get(known, field) ~= one.text then
      put(known, field, one.text)
      put(act.meta, "declared_seq", number(act.meta, "seq") or 0) -- waiting tasks are updated when their turn comes
    end
  end
  for field in pairs(origin == "file" and known.known or NONE) do
    if string.sub(field, 1, 5) == "file:" and not stated[field] then put(known, field, nil) end
  end
end

keep("types", new_types)
keep("pipelines", cmsgpack.unpack(pipelines))
if origin == "file" then declarations.note_older() end
waking.wake()
commit()
return {answer = "ok"}
