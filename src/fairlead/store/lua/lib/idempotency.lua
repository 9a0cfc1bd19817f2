-- Idempotency keys: what a key was used for and how that ended, within its window.
--
-- Stored as "<digest> <id>", and once it has ended with " <state> <priority> <effective priority>": the key may outlive the record.

-- {digest, id, and of what has ended state, priority, effective}; nil when the key was not used.
function idempotency.find(key)
  local known = act.submitted_keys[key] or call("GET", keys.idempotency(key))
  if not known then return nil end
  local digest, id, rest = string.match(known, "^(%S+) (%S+)(.*)$")
  local state, priority, effective = string.match(rest, "^ (%S+) (%S+) (%S+)$")
  return {digest = digest, id = id, state = state, priority = priority, effective = effective}
end

-- For the whole window, or what is `left` of it.
function idempotency.remember(key, digest, id, left)
  act.submitted_keys[key] = digest .. " " .. id
  write({"SET", keys.idempotency(key), act.submitted_keys[key], "PX", left or setting("idempotency_ttl")})
end

-- As it was remembered before the data was lost, for what is left of its window.
function idempotency.restore(key, digest, id, created)
  local left = created + setting("idempotency_ttl") - act.instant
  if key and digest and left > 0 then idempotency.remember(key, digest, id, left) end
end

-- After its window the key may belong to another task.
local function find_of(key, id)
  local known = key and idempotency.find(key)
  return known and known.id == id and known
end

function idempotency.note_end(key, id, state, priority, effective)
  local known = find_of(key, id)
  if not known then return end
  local text = table.concat({known.digest, id, state, int(priority), int(effective)}, " ")
  write({"SET", keys.idempotency(key), text, "XX", "KEEPTTL"})
end

function idempotency.free(key, id)
  if find_of(key, id) then write({"UNLINK", keys.idempotency(key)}) end
end
