-- Hashes as this act leaves them.
--
-- USES     unit

local hash_views, hash_list = {}, {}

local function hash(key)
  local view = hash_views[key]
  if not view then
    view = {key = key, known = {}, changed = {}}
    hash_views[key] = view
    hash_list[#hash_list + 1] = view
  end
  return view
end

-- Reads all fields at once; nil when there is no such hash.
local function whole(key)
  local view = hash(key)
  if not view.whole then
    view.whole = true
    local flat = call("HGETALL", key)
    for i = 1, #flat, 2 do
      if view.known[flat[i]] == nil then view.known[flat[i]] = flat[i + 1] end
    end
  end
  if next(view.known) == nil then return nil end
  return view
end

local function load_fields(view, names)
  local values = call("HMGET", view.key, unpack(names))
  for i, name in ipairs(names) do view.known[name] = values[i] end
  return view
end

local function get(view, field)
  local value = view.known[field]
  if value == nil and not view.whole then
    value = call("HGET", view.key, field)
    view.known[field] = value
  end
  return value or nil
end

local function number(view, field)
  return tonumber(get(view, field) or nil)
end

-- nil deletes the field.
local function put(view, field, value)
  if type(value) == "number" then value = int(value) end
  view.known[field] = value or false
  view.changed[field] = true
end

local function change_count(view, field, by)
  local count = (number(view, field) or 0) + by
  put(view, field, count > 0 and count or nil)
  return count
end

on_commit(function()
  for _, view in ipairs(hash_list) do
    local sets, dels = {}, {}
    for field in pairs(view.changed) do
      if view.known[field] then
        sets[#sets + 1] = field
        sets[#sets + 1] = view.known[field]
      else
        dels[#dels + 1] = field
      end
    end
    write_many("HSET", view.key, sets, 2)
    write_many("HDEL", view.key, dels, 1)
    if view.persist then write("PERSIST", view.key) end
    if view.ttl then write("PEXPIRE", view.key, view.ttl) end
  end
end)
