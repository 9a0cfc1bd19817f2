-- Who holds the units of a limit, and when there is room for more.

local MOST_SHOWN, MOST_LOOKED_AT = 8, 64

-- The run of a task, or a lease without one. `ends`: at the latest, unless a deadline is extended or a lease renewed.
local function holder_of(id, units)
  local bare = string.match(id, "^lease:(.*)$")
  if bare then
    local lease = hash(keys.lease(bare))
    local ends = number(lease, "until")
    return {
      id = bare, units = tonumber(units), is_task = false, name = get(lease, "holder"), since = number(lease, "since"),
      expires = ends, ends = ends,
    }
  end
  local t = records.find(id)
  if not t then return nil end
  return {
    id = id, units = tonumber(units), is_task = true, kind = records.run_kind(t.known.facts, records.tier_of(t)), name = get(t, "worker"), tenant = t.known.facts.tenant,
    since = number(t, "started"), expires = number(t, "lease_until"), ends = number(t, "deadline"),
  }
end

local function ends_before(a, b)
  local a_ends, b_ends = a.ends or math.huge, b.ends or math.huge
  if a_ends ~= b_ends then return a_ends < b_ends end
  return a.id < b.id
end

-- Some of the holders, by when they end.
local function some_of(limit)
  local found, seen = {}, {}
  local page = call("HSCAN", keys.holders(limit.name), "0", "COUNT", MOST_LOOKED_AT)[2]
  for i = 1, #page, 2 do
    local holder = not seen[page[i]] and #found < MOST_LOOKED_AT and holder_of(page[i], page[i + 1])
    seen[page[i]] = true
    if holder then found[#found + 1] = holder end
  end
  table.sort(found, ends_before)
  return found
end

-- When enough of them have ended for these units.
local function freed_at(list, lacking)
  for _, holder in ipairs(list) do
    lacking = lacking - holder.units
    if lacking <= 0 then return holder.ends end
  end
end

-- Those of a slots limit that end first, and at which instant it has room for `lacking` more units, as far as they say it.
function holding.of(limit, lacking)
  if get(limit, "kind") ~= "slots" then return {}, nil end
  local list, shown = some_of(limit), {}
  for i = 1, math.min(#list, MOST_SHOWN) do shown[i] = list[i] end
  return shown, freed_at(list, lacking)
end
