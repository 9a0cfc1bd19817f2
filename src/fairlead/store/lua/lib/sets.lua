-- Sorted sets as this act leaves them, read from the front only as far as needed.

function ordered(key)
  local set = act.ordered_views[key]
  if not set then
    set = {key = key, window = NONE, added = NONE, removed = NONE, list = nil}
    act.ordered_views[key] = set
  end
  return set
end

local function note_change(set)
  if set.added == NONE and set.removed == NONE then act.changed_sets[#act.changed_sets + 1] = set end
end

function remove(set, member)
  set.list = nil
  local added, removed = set.added, set.removed
  if added[member] then
    added[member] = nil
    if not removed[member] then return end -- it was added by this act: nothing is stored
  end
  if removed == NONE then
    note_change(set)
    removed = {}
    set.removed = removed
  end
  removed[member] = true
end

-- Adds a member that is not stored, or was removed by this act.
function insert(set, member, score)
  set.list = nil
  if set.added == NONE then
    note_change(set)
    set.added = {}
  end
  set.added[member] = score
end

function add(set, member, score)
  if set.removed == NONE then
    note_change(set)
    set.removed = {}
  end
  set.removed[member] = true
  insert(set, member, score)
end

-- The window grows: one claim looks at one head, a batch at many. `passed`: what was read before is no longer needed.
local function read_on(set, passed)
  local loaded, chunk = set.loaded or 0, set.chunk or 2
  local more = call("ZRANGE", set.key, loaded, loaded + chunk - 1, "WITHSCORES")
  set.loaded = loaded + chunk
  if #more < 2 * chunk then set.exhausted = true end
  if passed or set.window == NONE then
    set.window, set.at = more, 1
  else
    for i = 1, #more do set.window[#set.window + 1] = more[i] end
  end
  set.chunk = math.min(chunk * 4, 128)
end

local function skip_removed(set)
  while true do
    local at = set.at -- nil: nothing was read yet
    local member = at and set.window[at]
    if member == nil then
      if set.exhausted then return nil end
      read_on(set, true) -- all in the window were removed
    elseif set.removed[member] then
      set.at = at + 2
    else
      return member, tonumber(set.window[at + 1])
    end
  end
end

function first(set)
  local best, least = skip_removed(set)
  for member, score in pairs(set.added) do
    if not best or score < least or (score == least and member < best) then best, least = member, score end
  end
  return best, least
end

-- The first `count` members with a score up to `score`, in order.
function up_to(set, score, count)
  while not set.exhausted and (#set.window == 0 or tonumber(set.window[#set.window]) <= score)
    and #set.window < 2 * (count + 128) do
    read_on(set)
  end
  local window, list, due = set.window, {}, {}
  if next(set.added) == nil then -- the window is in order
    for i = 1, #window, 2 do
      if #list == count or tonumber(window[i + 1]) > score then break end
      if not set.removed[window[i]] then list[#list + 1] = window[i] end
    end
    return list
  end
  for i = 1, #window, 2 do
    local member, at = window[i], tonumber(window[i + 1])
    if at <= score and not set.removed[member] then due[#due + 1] = {member, at} end
  end
  for member, at in pairs(set.added) do
    if at <= score then due[#due + 1] = {member, at} end
  end
  table.sort(due, function(a, b) return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1]) end)
  for i = 1, math.min(count, #due) do list[i] = due[i][1] end
  return list
end

function has_members(set)
  return next(set.added) ~= nil or skip_removed(set) ~= nil
end

-- All members, which the caller does not change; only for sets that are bounded by configuration.
function members(set)
  if set.list then return set.list end
  if not set.loaded then set.chunk = 32 end
  while not set.exhausted do read_on(set) end
  local all = {}
  for i = 1, #set.window, 2 do
    if not set.removed[set.window[i]] then all[#all + 1] = set.window[i] end
  end
  for member in pairs(set.added) do all[#all + 1] = member end
  set.list = all
  return all
end

function sets.write()
  for i = 1, #act.changed_sets do
    local set = act.changed_sets[i]
    local added = set.added
    if set.removed ~= NONE then
      local removes = {"ZREM", set.key}
      for member in pairs(set.removed) do
        if added[member] == nil then removes[#removes + 1] = member end
      end
      write_many(removes, 1)
    end
    if added ~= NONE then
      local adds, length = {"ZADD", set.key, nil, nil}, 2
      for member, score in pairs(added) do
        adds[length + 1], adds[length + 2] = text_of(score), member
        length = length + 2
      end
      write_many(adds, 2)
    end
  end
end
