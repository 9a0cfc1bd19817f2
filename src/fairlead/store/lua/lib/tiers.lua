-- Tiers: classes of how long a task may run (docs/tiers.md). They are nested: a task of a tier takes a unit of the limit of its tier,
-- `tier:<name>`, and of those of all shorter tiers.
--
-- An elastic task, which names no duration, needs the shortest tier only. When it starts it also takes a unit of each longer tier that
-- has room, and may run as long as the longest of them allows. relief.lua takes these units back when a waiting task needs them.

local PREFIX, SERVICE = names.TIERS, "service:"
local INTERACTIVE = "interactive"

-- `optional`: what an elastic run of this tier takes beyond the shortest one.
local function parsed(text)
  local list, optional = {}, nil
  for name, ms, share, sign in string.gmatch(text, "([^=,]+)=(%d+)/(%d+)(%%?)") do
    local tier = {name = name, limit = PREFIX .. name, ms = tonumber(ms), index = #list + 1}
    if #list > 0 then optional = (optional and optional .. "," or "") .. names.need(tier.limit, 1) end
    tier.optional = optional
    if sign == "%" then tier.share = tonumber(share) else tier.most = tonumber(share) end
    list[#list + 1], list[name] = tier, tier
  end
  return list
end

-- The tiers of the namespace, shortest first, and by name; empty: it has none.
function tiers.all()
  if not act.tiers then act.tiers = memo.of("tiers", setting("tiers") or "", parsed) end
  return act.tiers
end

-- Is this the limit of a tier?
function tiers.is_limit(name)
  return string.sub(name, 1, #PREFIX) == PREFIX
end

-- The name of the tier of this limit; nil when it is another limit.
function tiers.name_of(limit)
  return tiers.is_limit(limit) and string.sub(limit, #PREFIX + 1) or nil
end

-- The tier of this limit as it is now configured, or nil.
function tiers.of_limit(name)
  return tiers.all()[tiers.name_of(name)]
end

-- A longer tier never has more room than a shorter one, whatever the shares of a small fleet are rounded to.
local function set_limits()
  local capacity, most = number(act.meta, "capacity") or 0, math.huge
  for _, tier in ipairs(tiers.all()) do
    most = math.min(most, tier.most or math.max(1, math.floor(capacity * tier.share / 100)))
    local limit = limits.of(tier.limit)
    if not limit or number(limit, "limit") ~= most or get(limit, "group") then limits.define(tier.limit, "slots", most) end
  end
end

-- The policy may have changed: limits of tiers that are no longer configured end when nothing needs them.
function tiers.follow_policy()
  local text, known = setting("tiers") or "", get(act.meta, "tiers_applied") or ""
  if text == known then return end
  put(act.meta, "tiers_applied", text ~= "" and text or nil)
  for _, tier in ipairs(parsed(known)) do
    local limit = not tiers.all()[tier.name] and limits.of(tier.limit)
    if limit then
      put(limit, "group", 1)
      act.left_limits[tier.limit] = limit
    end
  end
  set_limits()
end

-- Steps of services are calls to somebody else, which no tier bounds.
local function is_service(task_type)
  return string.sub(task_type, 1, #SERVICE) == SERVICE
end

-- Does this worker run tasks that tiers count? `served` is its list of types.
local function counts_for_tiers(served)
  for task_type in string.gmatch(served, "[^,]+") do
    if not is_service(task_type) then return true end
  end
  return false
end

-- What a worker can run at once, as long as it is listed: shares are of the sum.
function tiers.count_capacity(name, capacity, served)
  local known = hash(keys.capacity)
  if served and not counts_for_tiers(served) then capacity = 0 end
  local by = capacity - (number(known, name) or 0)
  if by == 0 then return end
  put(known, name, capacity > 0 and capacity or nil)
  change_count(act.meta, "capacity", by)
  set_limits()
end

local function unknown(duration)
  local choices = {}
  for i, tier in ipairs(tiers.all()) do choices[i] = tier.name end
  choices[#choices + 1] = INTERACTIVE
  return types.invalid("duration", "unknown_tier", "no tier is called " .. duration .. "; known: " .. table.concat(choices, ", "))
end

-- Its needs without those of tiers: name -> units.
local function own_units(needed)
  local units = {}
  for _, need in ipairs(limits.needs(needed)) do
    if not need.tier then units[need.name] = need.units end
  end
  return units
end

-- Gives a task the limits of its tier, as tiers are configured now. A refusal, or nil. A second time changes nothing.
function tiers.assign(spec)
  local all, duration, units = tiers.all(), spec.facts and spec.facts.duration, own_units(spec.limits)
  spec.elastic, spec.interactive, spec.limits = nil, nil, types.write_needs(units)
  if #all == 0 then
    return duration and types.invalid("duration", "unknown_tier", "no tiers are configured: omit it") or nil
  end
  if is_service(spec.type) then return nil end
  local tier = not duration and all[1] or duration == INTERACTIVE and all[1] or all[duration]
  if not tier then return unknown(duration) end
  spec.elastic, spec.interactive = not duration or nil, duration == INTERACTIVE or nil
  for i = 1, tier.index do units[all[i].limit] = 1 end
  spec.limits = types.write_needs(units)
end

-- The same for a task that is queued again after it has ended. If its tier is gone, it has none.
function tiers.assign_again(t)
  local facts = t.known.facts
  local spec = {type = facts.type, limits = facts.limits or "", facts = {duration = facts.duration}}
  tiers.assign(spec)
  if spec.limits == (facts.limits or "") and spec.elastic == facts.elastic then return end
  records.change(t, "limits", spec.limits ~= "" and spec.limits or nil)
  records.change(t, "elastic", spec.elastic)
end

-- The longest tier that has room for this task together with all shorter ones.
local function longest_free(all, class)
  local longest = all[1]
  for i = 2, #all do
    if limits.room(limits.of(all[i].limit), class, false) < 1 then break end
    longest = all[i]
  end
  return longest
end

-- The limits of all tiers longer than the one at `from`, up to `to`, as a text; nil when there are none.
function tiers.units_between(from, to)
  local all, list = tiers.all(), {}
  for i = from + 1, to do list[#list + 1] = names.need(all[i].limit, 1) end
  return #list > 0 and table.concat(list, ",") or nil
end

local function history_entry(tier, now, reason)
  return cjson.encode({tier = tier, at = now, reason = reason})
end

-- A run may take only as long as `tier` from now on. Runs that keep the tier with which they started have no history.
function tiers.note_change(t, tier, now, reason)
  local before = get(t, "tiers") or "[" .. history_entry(get(t, "tier"), number(t, "started"), "started") .. "]"
  put(t, "tier", tier.name)
  put(t, "tiers", string.sub(before, 1, -2) .. "," .. history_entry(tier.name, now, reason) .. "]")
end

-- The deadline of a run; `bounded` when it is that of the tier.
function tiers.bound(t, tier)
  local ends = number(t, "started") + tier.ms
  if ends < number(t, "deadline") then
    put(t, "deadline", ends)
    put(t, "bounded", 1)
  end
end

-- A run of `t` begins: what else it takes, and until when it may run.
function tiers.begin_run(t, class)
  local all, facts = tiers.all(), t.known.facts
  if get(t, "bounded") then put(t, "bounded", nil) end
  local tier = facts.elastic and #all > 0 and longest_free(all, class) or facts.duration and all[facts.duration]
  if not tier then return end -- it is interactive, or older than the tiers
  if facts.elastic then
    put(t, "optional", tier.optional)
    if tier.optional then
      limits.take(t.id, limits.needs(tier.optional))
      tiers.offer(t, tier)
    end
  end
  put(t, "tier", tier.name)
  if get(t, "tiers") then put(t, "tiers", nil) end -- of an earlier run
  tiers.bound(t, tier)
end

-- It can be shortened from now on. The youngest comes first: least of its work is lost.
function tiers.offer(t, tier)
  if tier and tier.index > 1 then add(ordered(keys.elastic(tier.name)), t.id, -number(t, "fence")) end
end

function tiers.withdraw(t)
  local tier = get(t, "tier")
  if tier then remove(ordered(keys.elastic(tier)), t.id) end
end

local OF_RUN = {"tier", "optional", "revoked", "relieves"}

-- Its lease ends.
function tiers.end_run(t)
  load_fields(t, OF_RUN)
  if get(t, "optional") then tiers.withdraw(t) end
  for _, field in ipairs({"optional", "revoked"}) do
    local units = get(t, field)
    if units then
      limits.free(t.id, limits.needs(units))
      put(t, field, nil)
    end
  end
  revoking.end_for(t)
end
