-- How a profile joins: workers of a new profile are given tasks only when it can see every waiting sub-queue that it serves.
--
-- Until then their claims move sub-queues to an audience that contains the profile and answer "again". Other profiles are not
-- affected, because they are in the new audience of a moved sub-queue too.

local ROUTES_AT_ONCE = 256 -- looked at
local SUBS_AT_ONCE = 64 -- moved

-- Moves up to `most` sub-queues of a route, those after `after`. Returns how many, and the last unless it was the end.
local function move_subs(route, after, most)
  local start = after and "(" .. after or "-"
  local found = call("ZRANGEBYLEX", keys.subs(route), start, "+", "LIMIT", 0, most)
  for _, sub in ipairs(found) do act.touched_subs[sub] = "move" end
  return #found, #found == most and found[#found] or nil
end

-- Adds to `todo` the routes of `list` that the profile serves and cannot find yet; they get an audience that contains it.
local function split(id, list, todo)
  local profile = audiences.registry().profiles[id]
  for _, route in ipairs(list) do
    if audiences.serves(profile, route) and audiences.move_route(route, id) then todo[#todo + 1] = route end
  end
end

-- All routes at once: an audience whose routes the profile serves all, or none, stays as it is.
local function join_at_once(id, known)
  local profile, all, some, todo = audiences.registry().profiles[id], {}, {}, {}
  for route, audience in pairs(known) do
    local list = all[audience] or {served = {}, total = 0}
    all[audience] = list
    list.total = list.total + 1
    if audiences.serves(profile, route) then list.served[#list.served + 1] = route end
  end
  for audience, list in pairs(all) do
    if #list.served == list.total then
      audiences.extend(audience, id)
    elseif #list.served > 0 then
      some[#some + 1] = list.served
    end
  end
  for _, served in ipairs(some) do split(id, served, todo) end
  return todo
end

local function join(id)
  if call("HLEN", keys.routes) <= ROUTES_AT_ONCE then
    local routes = whole(keys.routes)
    return {todo = join_at_once(id, routes and routes.known or NONE)}
  end
  return {todo = {}, cursor = "0"}
end

-- Moves what it can in one act; what is left to do, or nil when the profile has joined.
local function step(id, left)
  local moved = 0
  while moved < SUBS_AT_ONCE do
    local route = left.todo[#left.todo]
    if route then
      local count, last = move_subs(route, left.after, SUBS_AT_ONCE - moved)
      moved = moved + math.max(1, count)
      left.after = last
      if not last then left.todo[#left.todo] = nil end
    elseif left.cursor then
      local page = call("HSCAN", keys.routes, left.cursor, "COUNT", SUBS_AT_ONCE)
      local list = {}
      for i = 1, #page[2], 2 do list[#list + 1] = page[2][i] end
      split(id, list, left.todo)
      left.cursor = page[1] ~= "0" and page[1] or nil
      moved = moved + 8
    else
      return nil
    end
  end
  return left
end

-- Continues with a profile that is joining. Has it joined?
function profiles.has_joined(id)
  local known = hash(keys.profiles)
  local left = get(known, "j:" .. id)
  if not left then return true end
  left = step(id, cmsgpack.unpack(left))
  put(known, "j:" .. id, left and cmsgpack.pack(left) or nil)
  queues.reindex()
  return not left
end

-- The profile under which `worker` (a record) is listed from now on.
function profiles.list(worker)
  local id, is_new = audiences.profile(get(worker, "types") .. ";" .. get(worker, "capabilities"))
  local before = get(worker, "profile")
  if before == id then return id end
  if before then profiles.unlist(worker) end
  put(worker, "profile", id)
  put(hash(keys.listed), worker.id, id)
  tiers.count_capacity(worker.id, number(worker, "capacity"), get(worker, "types"))
  audiences.count_workers(id, 1)
  put(hash(keys.profiles), "z:" .. id, nil)
  if is_new then
    local left = step(id, join(id))
    if left then put(hash(keys.profiles), "j:" .. id, cmsgpack.pack(left)) end
    queues.reindex()
  end
  return id
end

-- Worker `name` has no profile any more. The profile stays for other workers.
function profiles.uncount(name)
  local listed = hash(keys.listed)
  local id = get(listed, name)
  if not id then return end
  put(listed, name, nil)
  tiers.count_capacity(name, 0)
  if audiences.count_workers(id, -1) <= 0 then put(hash(keys.profiles), "z:" .. id, act.instant) end
end

-- It is given no more tasks: it drains, is dead, or has left.
function profiles.unlist(worker)
  put(worker, "profile", nil)
  profiles.uncount(worker.id)
end

-- Forgets one profile that no worker has had since `instant`.
function profiles.forget_old(instant)
  local known = whole(keys.profiles)
  for field, since in pairs(known and known.known or NONE) do
    local id = since and string.match(field, "^z:(%d+)$")
    if id and tonumber(since) < instant then return audiences.forget_profile(id) end
  end
end
