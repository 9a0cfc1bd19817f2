-- API keys: their records, the list of them by when they end, and a word to whoever remembers them.

access.NEVER = 253402300799999 -- the end of the year 9999
local KEPT = 90 * 86400000 -- ms for which a key that has ended is still shown

function access.record(id)
  return whole(keys.key(id))
end

-- It ends then, or never. Those who remember the key look again: they must not take it for what it was.
function access.key_ends(id, instant)
  add(ordered(keys.keys), id, instant or access.NEVER)
  write({"PUBLISH", keys.prefix .. "changed_keys", id})
end

-- What ended long ago goes only when another key is made: where there was a key once, there is one for ever, and a server
-- that asks for keys never finds that it has none and asks no more.
function access.issue(id, fields, now)
  fields.created = now
  fields.expires = fields.lifetime and now + fields.lifetime or nil
  for _, old in ipairs(up_to(ordered(keys.keys), now - KEPT, 128)) do
    remove(ordered(keys.keys), old)
    write({"UNLINK", keys.key(old)})
  end
  new_hash(keys.key(id), fields)
  access.key_ends(id, fields.expires)
  return fields
end
