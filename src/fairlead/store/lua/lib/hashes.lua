-- Hashes as this act leaves them, read once. A field set by this act may be a number until the server has stored it.
--
-- Of a view, `known` fields are as this act leaves them (false: there is no such field), and `changed` ones are written. `ttl` and
-- `persist` say when the hash runs out, and with it the key `beside` it.

-- An empty table with room for eight fields, or for sixteen: one that grows is copied each time.
local function roomy(fields)
  if fields <= 8 then return {a = nil, b = nil, c = nil, d = nil, e = nil, f = nil, g = nil, h = nil} end
  return {
    a = nil, b = nil, c = nil, d = nil, e = nil, f = nil, g = nil, h = nil,
    i = nil, j = nil, k = nil, l = nil, m = nil, n = nil, o = nil, p = nil,
  }
end

function hash(key)
  local view = act.hash_views[key]
  if not view then
    view = {key = key, known = NONE, changed = nil, whole = nil, is_gathered = nil, id = nil, ttl = nil, beside = nil, ran = nil}
    act.hash_views[key] = view
  end
  return view
end

-- Views without known fields share an empty table: before one is filled it gets its own.
local function own_table(view)
  view.known = {}
  return view.known
end

-- Several fields: with room for eight.
local function begin_changes(view)
  local changed = {a = nil, b = nil, c = nil, d = nil, e = nil, f = nil, g = nil, h = nil}
  view.changed = changed
  act.changed_hashes[#act.changed_hashes + 1] = view
  return changed
end

-- A hash that this act creates, with these fields; false keeps room for a field that is set later.
function new_hash(key, fields)
  local view = hash(key)
  view.known, view.whole = fields, true
  local changed = begin_changes(view)
  for field, value in pairs(fields) do changed[field] = value and true or nil end
  return view
end

-- Reads all fields at once; nil when there is no such hash.
function whole(key)
  local view = hash(key)
  if not view.whole then
    view.whole = true
    local flat, before = call("HGETALL", key), view.known
    local known = roomy(#flat / 2)
    for i = 1, #flat, 2 do known[flat[i]] = flat[i + 1] end
    for field, value in pairs(before) do known[field] = value end -- what this act has changed, or read
    view.known = known
  end
  if next(view.known) == nil then return nil end
  return view
end

function load_fields(view, wanted)
  local values, known = call("HMGET", view.key, unpack(wanted)), view.known
  if known == NONE then
    known = own_table(view)
    for i = 1, #wanted do known[wanted[i]] = values[i] end
    return view
  end
  for i = 1, #wanted do
    if known[wanted[i]] == nil then known[wanted[i]] = values[i] end
  end
  return view
end

function get(view, field)
  local known = view.known
  local value = known[field]
  if value == nil and not view.whole then
    value = call("HGET", view.key, field)
    if known == NONE then known = own_table(view) end
    known[field] = value
  end
  return value or nil
end

function number(view, field)
  local value = get(view, field)
  return value and tonumber(value)
end

-- Reads two fields as numbers, once and for all. All fields of the hash are known.
function hashes.read_numbers(view, one, other)
  local known = view.known
  known[one], known[other] = tonumber(known[one]), tonumber(known[other])
end

-- All fields at once: others are deleted.
function hashes.replace(view, fields)
  local before = whole(view.key)
  for field in pairs(before and before.known or NONE) do
    if not fields[field] then put(view, field, nil) end
  end
  for field, value in pairs(fields) do put(view, field, value) end
  view.whole, view.is_gathered = true, nil
end

-- nil deletes the field.
function put(view, field, value)
  local known = view.known
  if not value then
    if not known[field] and (view.whole or known[field] == false) then return end -- it is not there
    value = false
  end
  if known == NONE then known = own_table(view) end
  known[field] = value
  if view.changed then
    view.changed[field] = true
  else
    view.changed = {[field] = true}
    act.changed_hashes[#act.changed_hashes + 1] = view
  end
end

-- Several at once, {field, value...}; deletes none.
function put_all(view, pairs_of)
  local known, changed = view.known, view.changed or begin_changes(view)
  if known == NONE then known = own_table(view) end
  for i = 1, #pairs_of, 2 do
    known[pairs_of[i]] = pairs_of[i + 1]
    changed[pairs_of[i]] = true
  end
end

-- Some hashes keep many values that hardly ever change in one packed field. Of such a field a table is known.

function unpack_field(view, field)
  local packed = view.known[field]
  if type(packed) == "string" then view.known[field] = cmsgpack.unpack(packed) end
end

-- The same for fields that are stored separately.
function gather(view, field, names_of)
  local all = {}
  for i = 1, #names_of do all[names_of[i]] = view.known[names_of[i]] or nil end
  view.known[field], view.is_gathered = all, true
end

function change_count(view, field, by)
  local count = (number(view, field) or 0) + by
  put(view, field, count > 0 and count or nil)
  return count
end

local function write_changed(view)
  local known, length = view.known, 2
  local kept, gone = { -- with room for seven fields
    "HSET", view.key, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil,
  }, nil
  for field in pairs(view.changed) do
    local value = known[field]
    if value then
      kept[length + 1], kept[length + 2] = field, text_of(value)
      length = length + 2
    else
      gone = gone or {"HDEL", view.key}
      gone[#gone + 1] = field
    end
  end
  write_many(kept, 2)
  if gone then write_many(gone, 1) end
end

function hashes.write()
  for i = 1, #act.changed_hashes do
    local view = act.changed_hashes[i]
    write_changed(view)
    if view.persist then write({"PERSIST", view.key}) end
    if view.ttl then write({"PEXPIRE", view.key, view.ttl}) end
    if view.beside then write(view.persist and {"PERSIST", view.beside} or {"PEXPIRE", view.beside, view.ttl}) end
  end
end
