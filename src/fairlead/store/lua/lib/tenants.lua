-- What a tenant means by the name of a limit: one that its task type needs anyway, one of its own, or one that the operator shares
-- with all tenants. It cannot name others. `scope` is the prefix of the names of a tenant (fairlead.model.tenants makes it); "" is
-- the operator, who uses stored names.

tenants.MOST_LIMITS = 1000 -- that a tenant may define; those that a submit makes end by themselves

-- The stored name. A limit that is not defined would be the tenant's own.
function tenants.limit_meant(scope, name)
  if scope == "" then return name end
  local shared = not limits.of(scope .. name) and limits.of(name)
  return shared and get(shared, "shared") and name or scope .. name
end

-- As the tenant writes it.
function tenants.plain_name(stored)
  return string.match(stored, "/(.*)$") or stored
end

-- Does the holder of a lease mean its limit, by its stored name, with `name`? Also when another limit has that name by now.
function tenants.is_called(stored, scope, name)
  return stored == name or stored == scope .. name
end

-- The names of limits in a task that a tenant submits become those of the store.
function tenants.name_limits(spec)
  local scope = spec.scope
  if not scope then return end
  spec.scope = nil
  local of_type = types.limits_of(spec.type)
  local function meant(name) return of_type[name] and name or tenants.limit_meant(scope, name) end
  local units = {}
  for _, need in ipairs(limits.needs(spec.limits)) do units[meant(need.name)] = need.units end
  spec.limits = types.write_needs(units)
  spec.group = spec.group and meant(spec.group)
end

-- May every tenant name this limit from now on?
function tenants.share(limit, shared)
  put(limit, "shared", shared and "1" or nil)
  if shared then add(ordered(keys.shared), limit.name, 0) else remove(ordered(keys.shared), limit.name) end
end

-- Has the tenant as many limits as it may have?
function tenants.is_full(scope)
  local past = string.sub(scope, 1, -2) .. "0" -- the first text after all that begin with the scope
  return call("ZLEXCOUNT", keys.limits, "[" .. scope, "(" .. past) >= tenants.MOST_LIMITS
end

local function page_of(key, after, past, count)
  return call("ZRANGEBYLEX", key, after, past, "LIMIT", 0, count)
end

-- Up to `count` stored names after this one that a tenant may see: first what is shared, then its own.
function tenants.names_after(scope, after, count)
  if scope == "" then return page_of(keys.limits, after == "" and "-" or "(" .. after, "+", count) end
  local past = "(" .. string.sub(scope, 1, -2) .. "0"
  local is_own = string.sub(after, 1, #scope) == scope
  local found = is_own and {} or page_of(keys.shared, after == "" and "-" or "(" .. after, "+", count)
  local left = count - #found
  local own = left > 0 and page_of(keys.limits, is_own and "(" .. after or "[" .. scope, past, left) or NONE
  for _, name in ipairs(own) do found[#found + 1] = name end
  return found
end
