-- Hashes as this act leaves them. A field set by this act may be a number until the server has stored it.
--
-- USES     unit

local hash_views, hash_list = {}, {}

-- `ttl` and `persist` of a view say when it runs out, and with it the key `beside` it.
local function hash(key)
  local view = hash_views[key]
  if not view then
    view = {key = key, known = {}, changed = NONE}
    hash_views[key] = view
    hash_list[#hash_list + 1] = view
  end
  return view
end

-- A hash that is made by this act, of these fields.
local function new_hash(key, fields)
  local view = {key = key, known = fields, changed = NONE, whole = true, is_new = true}
  hash_views[key] = view
  hash_list[#hash_list + 1] = view
  return view
end

-- Reads all fields at once; nil when there is no such hash.
local function whole(key)
  local view = hash(key)
  if not view.whole then
    view.whole = true
    local flat, known = call("HGETALL", key), view.known
    for i = 1, #flat, 2 do
      if known[flat[i]] == nil then known[flat[i]] = flat[i + 1] end
    end
  end
  if next(view.known) == nil then return nil end
  return view
end

local function load_fields(view, names)
  local values, known = call("HMGET", view.key, unpack(names)), view.known
  for i, name in ipairs(names) do
    if known[name] == nil then known[name] = values[i] end
  end
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
  if not value and not view.known[field] and (view.whole or view.known[field] == false) then return end -- it is not there
  view.known[field] = value or false
  if view.is_new then return end -- all of it is written
  if view.changed == NONE then view.changed = {} end
  view.changed[field] = true
end

local function change_count(view, field, by)
  local count = (number(view, field) or 0) + by
  put(view, field, count > 0 and count or nil)
  return count
end

local function write_fields(view, fields)
  local sets, dels, set_count = {}, {}, 0
  for field in pairs(fields) do
    local value = view.known[field]
    if value then
      sets[set_count + 1], sets[set_count + 2] = field, text_of(value)
      set_count = set_count + 2
    elseif not view.is_new then
      dels[#dels + 1] = field
    end
  end
  write_many("HSET", view.key, sets, 2)
  write_many("HDEL", view.key, dels, 1)
end

local function write_hashes()
  for _, view in ipairs(hash_list) do
    if view.is_new then
      write_fields(view, view.known)
    elseif view.changed ~= NONE then
      write_fields(view, view.changed)
    end
    if view.persist then write({"PERSIST", view.key}) end
    if view.ttl then write({"PEXPIRE", view.key, view.ttl}) end
    if view.beside then write(view.persist and {"PERSIST", view.beside} or {"PEXPIRE", view.beside, view.ttl}) end
  end
end
on_commit(write_hashes)
