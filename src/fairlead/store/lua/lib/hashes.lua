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
    local flat, known, before = call("HGETALL", key), {}, view.known
    for i = 1, #flat, 2 do known[flat[i]] = flat[i + 1] end
    for field, value in pairs(before) do known[field] = value end -- what this act has changed, or read
    view.known = known
  end
  if next(view.known) == nil then return nil end
  return view
end

local function load_fields(view, names)
  local values, known = call("HMGET", view.key, unpack(names)), view.known
  for i = 1, #names do
    if known[names[i]] == nil then known[names[i]] = values[i] end
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
  local value = get(view, field)
  return value and to_number(value)
end

-- nil deletes the field.
local function put(view, field, value)
  local known, changed = view.known, view.changed
  if not value then
    if not known[field] and (view.whole or known[field] == false) then return end -- it is not there
    value = false
  end
  known[field] = value
  if view.is_new then return end -- all of it is written
  if changed == NONE then
    changed = {}
    view.changed = changed
  end
  changed[field] = true
end

local function change_count(view, field, by)
  local count = (number(view, field) or 0) + by
  put(view, field, count > 0 and count or nil)
  return count
end

local function write_fields(view, fields)
  local sets, dels, count, known = {"HSET", view.key}, NONE, 2, view.known
  for field in pairs(fields) do
    local value = known[field]
    if value then
      if kind_of(value) == "number" then value = text_of(value) end
      sets[count + 1], sets[count + 2] = field, value
      count = count + 2
    elseif not view.is_new then
      if dels == NONE then dels = {} end
      dels[#dels + 1] = field
    end
    if count >= 400 then -- as much as fits the Lua stack
      write(sets)
      sets, count = {"HSET", view.key}, 2
    end
  end
  if count > 2 then write(sets) end
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
