-- API keys: their records, the list of them by when they end, and a word to whoever remembers them.
--
-- USES     begin ordered

local NEVER = 253402300799999 -- the end of the year 9999
local KEPT = 90 * 86400000 -- ms for which a key that has ended is still shown
local key_list = ordered(keys_key)

local function key_record(id)
  return whole(key_key(id))
end

-- It ends then, or never. Those who remember the key look again: they must not take it for what it was.
local function key_ends(id, instant)
  add(key_list, id, instant or NEVER)
  write({"PUBLISH", prefix .. "changed_keys", id})
end

-- What ended long ago goes only when another key is made: where there was a key once, there is one for ever, and a server
-- that asks for keys never finds that it has none and asks no more.
local function issue(id, fields, now)
  fields.created = now
  fields.expires = fields.lifetime and now + fields.lifetime or nil
  for _, old in ipairs(up_to(key_list, now - KEPT, 128)) do
    remove(key_list, old)
    write({"UNLINK", key_key(old)})
  end
  new_hash(key_key(id), fields)
  key_ends(id, fields.expires)
  return fields
end

-- { <field> <value>... }
local function key_fields(record)
  local flat = {}
  for field, value in pairs(record) do
    if value then
      flat[#flat + 1] = field
      flat[#flat + 1] = value
    end
  end
  return flat
end
