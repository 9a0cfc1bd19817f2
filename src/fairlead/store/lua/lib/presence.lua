-- Where the tasks of each tenant are, so that stats can show a tenant its own numbers. Tasks without a tenant are not listed: the
-- total counts are enough.

presence.DELAYED, presence.HELD = "d", "r" -- besides the places of queues

local function set_of(tenant, where)
  return ordered(keys.presence(where .. ":" .. tenant))
end

function presence.enter(t, where, instant)
  local tenant = t.known.facts.tenant
  if tenant then add(set_of(tenant, where), t.id, instant) end
end

function presence.leave(t, where)
  local tenant = t.known.facts.tenant
  if tenant then remove(set_of(tenant, where), t.id) end
end

-- It has ended; counted for a minute.
function presence.note_end(t, state)
  local tenant = t.known.facts.tenant
  if tenant then act.ended_of[state .. ":" .. tenant] = (act.ended_of[state .. ":" .. tenant] or 0) + 1 end
end

-- How many tasks of a tenant are there, and when the oldest of them came. A deleted record may leave its entry here.
function presence.look(tenant, where)
  local key = keys.presence(where .. ":" .. tenant)
  for _, id in ipairs(call("ZRANGE", key, 0, 99)) do
    if call("EXISTS", keys.task(id)) == 1 then return call("ZCARD", key), tonumber(call("ZSCORE", key, id)) end
  end
  return call("ZCARD", key), nil
end
