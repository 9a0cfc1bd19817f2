-- Signatures: the combinations of type, capabilities and limits that are queued. Each is a sub-queue or several, so they are
-- bounded.
--
-- USES     queues positions types

local MOST_SIGNATURES = 1024
local new_signatures, new_signatures_count = {}, 0 -- of this act

local function signature_of_spec(spec)
  return spec.type .. ";" .. spec.capabilities .. "|" .. spec.limits
end

-- Is a task like it queued? Where nobody is, that need not be asked.
local function is_queued(signature)
  return new_signatures[signature] or signatures.known[signature] or standing_in_all() > 0 and get(signatures, signature)
end

local function note_signature(spec)
  local signature = signature_of_spec(spec)
  if not is_queued(signature) then
    new_signatures[signature] = true
    new_signatures_count = new_signatures_count + 1
  end
end

local function check_signature(spec)
  if is_queued(signature_of_spec(spec)) or standing_in_all() == 0 then return end
  if call("HLEN", signatures_key) + new_signatures_count >= MOST_SIGNATURES then
    local what = MOST_SIGNATURES .. " different combinations of type, capabilities and limits"
    return invalid("limits", "too_many_signatures", what .. " are queued already: use fewer")
  end
end
