-- What an act changes in hashes, written with it.
--
-- Of a view, `sets` is the command that writes what this act has changed, `at` says where in it each field has its value, and
-- `length` how long it is; `absent` fields were not stored before. `ttl` and `persist` say when the hash runs out, and with it the
-- key `beside` it.
--
-- USES     hashes

local function begin_command(view)
  local at = {}
  -- with room for seven fields: a list that grows is copied each time
  local sets = {"HSET", view.key, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}
  view.at, view.sets, view.length, view.absent = at, sets, 2, NONE
  changed_hashes[#changed_hashes + 1] = view
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
    at[field], view.length, view.sets[position - 1] = position, position, field
    if before == false or before == nil and view.whole then -- it is not stored
      if view.absent == NONE then view.absent = {} end
      view.absent[field] = true
    end
  end
  view.sets[position] = not value and view.absent[field] and NONE or value
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
  local sets, length = view.sets, view.length
  for i = 1, #pairs_of, 2 do
    local field, value = pairs_of[i], pairs_of[i + 1]
    known[field] = value
    local position = at[field]
    if not position then
      length = length + 2
      position = length
      at[field], sets[position - 1] = position, field
    end
    sets[position] = value
  end
  view.length = length
end

local function change_count(view, field, by)
  local count = (number(view, field) or 0) + by
  put(view, field, count > 0 and count or nil)
  return count
end

local MOST_ARGUMENTS = 402 -- that fit the Lua stack with certainty, and are worth a command of their own

-- What is deleted, or too long for one command; NONE: it came and went in this act.
local function write_apart(key, sets, length)
  local kept, gone = {"HSET", key}, {"HDEL", key}
  for i = 3, length, 2 do
    local value = sets[i + 1]
    if not value then
      gone[#gone + 1] = sets[i]
    elseif value ~= NONE then
      kept[#kept + 1] = sets[i]
      kept[#kept + 1] = value
    end
  end
  write_many(kept, 2)
  write_many(gone, 1)
end

local function write_changed(view)
  local sets, length = view.sets, view.length
  local has_gone = false
  for i = 4, length, 2 do
    local value = sets[i]
    if value and value ~= NONE then
      sets[i] = texts[value] or text_of(value)
    else
      has_gone = true
    end
  end
  if has_gone or length > MOST_ARGUMENTS then
    write_apart(view.key, sets, length)
  else
    write(sets)
  end
end

local function write_new(view)
  local sets, length = { -- with room for twenty fields
    "HSET", view.key, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil,
    nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil,
  }, 2
  for field, value in pairs(view.known) do
    if value then
      sets[length + 1], sets[length + 2] = field, texts[value] or text_of(value)
      length = length + 2
    end
  end
  if length > MOST_ARGUMENTS then
    write_apart(view.key, sets, length)
  elseif length > 2 then
    write(sets)
  end
end

local function write_hashes()
  for i = 1, #changed_hashes do
    local view = changed_hashes[i]
    if view.is_new then write_new(view) else write_changed(view) end
    if view.persist then write({"PERSIST", view.key}) end
    if view.ttl then write({"PEXPIRE", view.key, view.ttl}) end
    if view.beside then write(view.persist and {"PERSIST", view.beside} or {"PEXPIRE", view.beside, view.ttl}) end
  end
end
on_commit(write_hashes)
