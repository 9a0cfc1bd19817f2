-- Is there a worker for what is submitted, and if not, what do the workers lack? They are counted by profile, not looked at.

local function is_served(route)
  for _, id in ipairs(audiences.registry().members[audiences.of(route)]) do
    if audiences.workers_of(id) > 0 then return true end
  end
  return false
end

-- What no worker can run yet, as a part of an answer: nil if there is a worker for it.
function coverage.unserved(task_type, capabilities)
  if is_served(subs.route_of(task_type, capabilities)) then return nil end
  return {type = task_type, capabilities = capabilities}
end

-- For a route that no worker serves: does one serve its type, and which capabilities does none of those have?
function coverage.lacking(route)
  local task_type, required = names.cut_route(route)
  local registry, serves_type, offered, missing = audiences.registry(), false, {}, {}
  for _, id in ipairs(registry.ids) do
    local profile = registry.profiles[id]
    if (not profile.types or profile.types[task_type]) and audiences.workers_of(id) > 0 then
      serves_type = true
      for capability in pairs(profile.capabilities) do offered[capability] = true end
    end
  end
  for capability in string.gmatch(required, "[^,]+") do
    if not offered[capability] then missing[#missing + 1] = capability end
  end
  return serves_type, missing
end

-- Task types that workers name, up to `most`.
function coverage.served_types(most)
  local registry, found, list = audiences.registry(), {}, {}
  for _, id in ipairs(registry.ids) do
    for task_type in pairs(audiences.workers_of(id) > 0 and registry.profiles[id].types or NONE) do
      if #list == most then return list end
      if not found[task_type] then list[#list + 1] = task_type end
      found[task_type] = true
    end
  end
  return list
end
