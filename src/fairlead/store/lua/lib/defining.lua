-- Defining a limit: it takes effect at once, and what waits for it is looked at.
--
-- USES     holds

local function define_limit(name, kind, limit, interval, burst)
  limit_of(name)
  local view = limit_views[name]
  local was = get(view, "kind")
  if was and was ~= kind then
    -- leases up to this fence took their units under the other kind: the doctor asks
    put(view, "redefined", number(meta, "fence") or 0)
    for _, lot in ipairs(members(ordered(lots_key(name)))) do remove(ordered(refills_key), lot) end
  end
  put(view, "kind", kind)
  put(view, "limit", kind == "slots" and tonumber(limit) or nil)
  put(view, "interval", kind == "rate" and tonumber(interval) or nil)
  put(view, "burst", kind == "rate" and tonumber(burst) or nil)
  if kind == "slots" then put(view, "tat", nil) end
  -- more in use than allowed is right for a lowered limit, and only there: the doctor asks
  put(view, "lowered", kind == "slots" and (number(view, "used") or 0) > tonumber(limit) and "1" or nil)
  add(ordered(limits_key), name, 0)
  end_impossible_holds()
  touch_limit(name)
  settle()
  freed_limits[name] = math.max(0, room(view, 0, true))
end
