-- Which limits overlap, learned from the needs of tasks (docs/scheduler.md, Hold).

local function contains(list, name)
  return string.find("," .. list .. ",", "," .. name .. ",", 1, true) ~= nil
end

-- Limit `name` was named together with `list` by tasks that need `caps` (nil: a lease without a task).
function overlap.remember_company(name, list, caps)
  local limit = limits.of(name)
  local company = {}
  for _, need in ipairs(list) do
    if need.units ~= 1 then company = {} break end
    if need.name ~= name then company[#company + 1] = need.name end
  end
  local known = get(limit, "with")
  if not known then
    put(limit, "with", table.concat(caps and company or {}, ","))
    put(limit, "caps", caps or "")
    return
  end
  if known == "" then return end
  local kept = {}
  for _, other in ipairs(company) do
    if contains(known, other) then kept[#kept + 1] = other end
  end
  if caps ~= get(limit, "caps") then kept = {} end
  local with = table.concat(kept, ",")
  if with == known then return end
  put(limit, "with", with)
  next_number("overlap_changes") -- sub-queues that were nested may overlap now: holds.lua checks them again
end

-- Could limits overlap that are needed together?
function overlap.is_possible(list)
  if #list < 2 then return false end
  for _, need in ipairs(list) do
    if not need.tier then return true end
  end
  return false
end

function overlap.remember(sub)
  local list = subs.needs(sub)
  local _, caps = names.cut_route(subs.route(sub))
  for _, need in ipairs(list) do overlap.remember_company(need.name, list, caps) end
end

-- Tiers do not overlap among themselves: a task that needs one needs all shorter ones.
function overlap.between(one, other)
  if tiers.is_limit(one) and tiers.is_limit(other) then return false end
  return not contains(get(limits.of(one), "with") or "", other) and not contains(get(limits.of(other), "with") or "", one)
end
