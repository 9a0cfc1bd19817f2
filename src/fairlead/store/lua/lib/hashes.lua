-- Hashes as this act leaves them, read once. A field set by this act may be a number until the server has stored it.
--
-- Of a view, `fields` is the command that writes what this act has changed, `at` says where in it each field has its value, and
-- `length` how long it is; `absent` fields were not stored before. `ttl` and `persist` say when the hash runs out, and with it the
-- key `beside` it.

local text_of, write, write_many = unit.text_of, unit.write, unit.write_many

local function hash(key)
  local view = act.hash_views[key]
  if not view then
    view = {key = key, known = NONE}
    act.hash_views[key] = view
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
  act.hash_views[key] = view
  act.changed_hashes[#act.changed_hashes + 1] = view
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

local function load_fields(view, wanted)
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
  return value and tonumber(value)
end

local function begin_command(view)
  local at = {}
  -- with room for seven fields: a list that grows is copied each time
  local fields = {"HSET", view.key, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}
  view.at, view.fields, view.length, view.absent = at, fields, 2, NONE
  act.changed_hashes[#act.changed_hashes + 1] = view
  return at
end

-- nil deletes the field.
local function put(view, field, value)
  local known = view.known
  if not value then
    if not known[field] and (view.whole or known[field] == false) then return end -- it is not there
    value = false
    view.has_gaps = true
  end
  local before = known[field]
  if known == NONE then known = own_table(view) end
  known[field] = value
  if view.is_new then return end -- all of it is written
  local at = view.at or begin_command(view)
  local position = at[field]
  if not position then
    position = view.length + 2
    at[field], view.length, view.fields[position - 1] = position, position, field
    if before == false or before == nil and view.whole then -- it is not stored
      if view.absent == NONE then view.absent = {} end
      view.absent[field] = true
    end
  end
  view.fields[position] = not value and view.absent[field] and NONE or value
end

-- Several at once, {field, value...}; none is deleted.
local function put_all(view, pairs_of)
  local known = view.known
  if known == NONE then known = own_table(view) end
  if view.is_new then -- all of it is written
    for i = 1, #pairs_of, 2 do known[pairs_of[i]] = pairs_of[i + 1] end
    return
  end
  local at = view.at or begin_command(view)
  local fields, length = view.fields, view.length
  for i = 1, #pairs_of, 2 do
    local field, value = pairs_of[i], pairs_of[i + 1]
    known[field] = value
    local position = at[field]
    if not position then
      length = length + 2
      position = length
      at[field], fields[position - 1] = position, field
    end
    fields[position] = value
  end
  view.length = length
end

-- One packed field is laid beside the others; `wanted` of what it says, or all. Returns it as it is stored.
local function unfold(view, field, wanted)
  local known, packed = view.known, view.known[field]
  local inner = cmsgpack.unpack(packed)
  known[field] = nil
  if not wanted then
    for name, value in pairs(inner) do known[name] = value end
  else
    for i = 1, #wanted do known[wanted[i]] = inner[wanted[i]] or false end
  end
  return packed
end

-- Stores `inner` as one packed field, and knows what it says. Returns it as it is stored.
local function fold(view, field, inner)
  local packed = cmsgpack.pack(inner)
  put_all(view, {field, packed})
  local known = view.known
  known[field] = nil
  for name, value in pairs(inner) do known[name] = value end
  return packed
end

-- A hash that is not stored yet, with such a field: `inner` becomes what is known of it.
local function new_folded(key, field, inner)
  local view, packed = hash(key), cmsgpack.pack(inner)
  view.known, view.whole = inner, true
  put_all(view, {field, packed})
  inner[field] = nil
  return view, packed
end

local function change_count(view, field, by)
  local count = (number(view, field) or 0) + by
  put(view, field, count > 0 and count or nil)
  return count
end

local MOST_ARGUMENTS = 402 -- that fit the Lua stack with certainty, and are worth a command of their own

-- What is deleted, or too long for one command; NONE: it came and went in this act.
local function write_apart(key, fields, length)
  local kept, gone = {"HSET", key}, {"HDEL", key}
  for i = 3, length, 2 do
    local value = fields[i + 1]
    if not value then
      gone[#gone + 1] = fields[i]
    elseif value ~= NONE then
      kept[#kept + 1] = fields[i]
      kept[#kept + 1] = value
    end
  end
  write_many(kept, 2)
  write_many(gone, 1)
end

local function write_changed(view)
  local fields, length = view.fields, view.length
  local has_gone = false
  for i = 4, length, 2 do
    local value = fields[i]
    if value and value ~= NONE then
      fields[i] = act.texts[value] or text_of(value)
    else
      has_gone = true
    end
  end
  if has_gone or length > MOST_ARGUMENTS then
    write_apart(view.key, fields, length)
  else
    write(fields)
  end
end

local function write_new(view)
  local fields, length = { -- with room for twenty fields
    "HSET", view.key, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil,
    nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil,
  }, 2
  for field, value in pairs(view.known) do
    if value then
      fields[length + 1], fields[length + 2] = field, act.texts[value] or text_of(value)
      length = length + 2
    end
  end
  if length > MOST_ARGUMENTS then
    write_apart(view.key, fields, length)
  elseif length > 2 then
    write(fields)
  end
end

function hashes.write()
  for i = 1, #act.changed_hashes do
    local view = act.changed_hashes[i]
    if view.is_new then write_new(view) else write_changed(view) end
    if view.persist then write({"PERSIST", view.key}) end
    if view.ttl then write({"PEXPIRE", view.key, view.ttl}) end
    if view.beside then write(view.persist and {"PERSIST", view.beside} or {"PEXPIRE", view.beside, view.ttl}) end
  end
end

hashes.hash, hashes.new_hash, hashes.whole, hashes.load_fields = hash, new_hash, whole, load_fields
hashes.get, hashes.number, hashes.put, hashes.put_all, hashes.change_count = get, number, put, put_all, change_count
hashes.unfold, hashes.fold, hashes.new_folded = unfold, fold, new_folded
