-- API keys: their records, the list of keys by when they end, and a message to processes that cache them.

access.NEVER = 253402300799999 -- the end of the year 9999
local KEPT = 90 * 86400000 -- ms for which a key that has ended is still listed

function access.record(id)
  return whole(keys.key(id))
end

-- It ends then, or never. Processes that cache the key read it again: they must not use an old one.
function access.key_ends(id, instant)
  add(ordered(keys.keys), id, instant or access.NEVER)
  write({"PUBLISH", keys.prefix .. "changed_keys", id})
end

-- Keys that ended long ago are deleted only when another key is created: a namespace that had a key once always has one, so a server
-- that requires keys never finds that there are none and stops requiring them.
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
