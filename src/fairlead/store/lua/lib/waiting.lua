-- Who waits: every task that is queued or delayed is counted for its owner, and the delayed ones are kept here.
--
-- USES     begin ordered

local newly_delayed = 0 -- by this act
local stored_in, come_to = {}, {} -- place -> tasks in it before this act, and how many more they are now
local stored_in_all, come_to_all = nil, 0 -- and those of all places

-- Whose task it is, as one text: a user within a tenant, or a tenant that names no users. nil when nobody is named.
local function owner_of(tenant, user)
  if not tenant and not user then return nil end
  return #(tenant or "") .. ":" .. (tenant or "") .. ":" .. (user or "")
end

-- How many are queued in a place now.
local function standing_at(place)
  local stored = stored_in[place]
  if not stored then
    stored = call("ZCARD", age_key(place))
    stored_in[place] = stored
  end
  return stored + (come_to[place] or 0)
end

-- Without a place: it is delayed.
local function count_waiting(t, by, place)
  if place then
    come_to[place] = (come_to[place] or 0) + by
    come_to_all = come_to_all + by
  end
  local owner = owner_of(t.known.tenant, t.known.user_id)
  if owner then change_count(hash(waiting_key), owner, by) end
end

local function delay_until(t, instant)
  put(t, "state", "delayed")
  put(t, "run_at", instant)
  add(ordered(delayed_key), t.id, instant)
  newly_delayed = newly_delayed + 1
  count_waiting(t, 1)
  start_at(instant)
end

local function end_delay(t)
  remove(ordered(delayed_key), t.id)
  newly_delayed = newly_delayed - 1
  count_waiting(t, -1)
end
