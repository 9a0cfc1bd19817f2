-- Forgets routes without waiting tasks, audiences without a route, profiles that no worker has had for an hour, and old declarations.
--
-- There may be any number of routes: each act looks at a page of them, then at a page of audiences. Audiences in use are noted on the
-- way, also by acts that make a route meanwhile; those not noted at the end are not used. meta's `tidying` says where it continues:
-- "r" or "a" and the server's cursor in the routes or the audiences.

local EVERY, HOUR = 600000, 3600000
local AT_ONCE = 256 -- routes or audiences

-- A route has got this audience.
function tidying.note_use(audience)
  if get(act.meta, "tidying") then put(hash(keys.used), audience, 1) end
end

-- `look` at the fields of one page of a hash. The cursor of the next one, or nil.
local function look_through(key, cursor, look)
  local page = call("HSCAN", key, cursor, "COUNT", AT_ONCE)
  for i = 1, #page[2], 2 do look(page[2][i]) end
  return page[1] ~= "0" and page[1] or nil
end

local function look_at_route(route)
  local routes = hash(keys.routes)
  local audience = get(routes, route)
  if call("EXISTS", keys.subs(route)) == 0 then return put(routes, route, nil) end
  declarations.note_waiting(route)
  if audience then put(hash(keys.used), audience, 1) end
end

local function look_at_audience(audience)
  if not get(hash(keys.used), audience) then audiences.forget(audience) end
end

-- Where to continue, or nil at the end.
local function tidy_page(at)
  local what, cursor = string.sub(at, 1, 1), string.sub(at, 2)
  if what == "r" then
    local following = look_through(keys.routes, cursor, look_at_route)
    if following then return "r" .. following end
    cursor = "0"
  end
  local following = look_through(keys.audiences, cursor, look_at_audience)
  if following then return "a" .. following end
  act.unlinked[#act.unlinked + 1] = keys.used
end

function tidying.tidy(now)
  local at = get(act.meta, "tidying")
  if not at then
    local since_last = now - (number(act.meta, "tidied") or 0)
    if since_last < EVERY then return end
    declarations.note_pause(since_last, now)
    put(act.meta, "tidied", now)
    profiles.forget_old(now - HOUR)
  end
  local following = tidy_page(at or "r0")
  put(act.meta, "tidying", following)
  if not following then declarations.forget_old(now) end
end
