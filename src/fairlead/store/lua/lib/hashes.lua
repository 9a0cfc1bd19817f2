-- Hashes as this act leaves them, read once. A field set by this act may be a number until the server has stored it.
--
-- USES     unit

local hash_views, changed_hashes = {}, {}

local function hash(key)
  local view = hash_views[key]
  if not view then
    view = {key = key, known = NONE}
    hash_views[key] = view
  end
  return view
end

-- A view that nothing was known of shares an empty table: before it is filled it gets one of its own.
local function own_table(view)
  view.known = {}
  return view.known
end

-- A hash that is made by this act, of these fields.
local function new_hash(key, fields)
  local view = {key = key, known = fields, whole = true, is_new = true}
  hash_views[key] = view
  changed_hashes[#changed_hashes + 1] = view
  return view
end

-- Reads all fields at once; nil when there is no such hash.
local function whole(key)
  local view = hash(key)
  if not view.whole then
    view.whole = true
    local flat, known, before = call("HGETALL", key), {}, view.known
    for i = 1, #flat, 2 do known[flat[i]] = flat[i + 1] end
    for field, value in pairs(before) do -- what this act has changed, or read
      known[field] = value
      view.has_gaps = true
    end
    view.known = known
  end
  if next(view.known) == nil then return nil end
  return view
end

local function load_fields(view, names)
  local values, known = call("HMGET", view.key, unpack(names)), view.known
  if known == NONE then
    known = own_table(view)
    for i = 1, #names do known[names[i]] = values[i] end
    return view
  end
  for i = 1, #names do
    if known[names[i]] == nil then known[names[i]] = values[i] end
  end
  return view
end

local function get(view, field)
  local known = view.known
  local value = known[field]
  if value == nil and not view.whole then
    value = call("HGET", view.key, field)
    if known == NONE then known = own_table(view) end
    known[field] = value
  end
  return value or nil
end

local function number(view, field)
  local value = get(view, field)
  return value and to_number(value)
end
