-- Signatures: the combinations of type, capabilities and limits that are queued. Each is a sub-queue or several, so they are
-- bounded.

local get = hashes.get

local MOST_SIGNATURES = 1024

local function signature_of_spec(spec)
  return spec.type .. ";" .. spec.capabilities .. "|" .. spec.limits
end

-- Is a task like it queued? Where nobody is, that need not be asked.
local function is_queued(signature)
  return act.new_signatures[signature] or act.signatures.known[signature] or positions.standing_in_all() > 0 and get(act.signatures, signature)
end

function signatures.note(spec)
  local signature = signature_of_spec(spec)
  if not is_queued(signature) then
    act.new_signatures[signature] = true
    act.new_signatures_count = act.new_signatures_count + 1
  end
end

function signatures.check(spec)
  if is_queued(signature_of_spec(spec)) or positions.standing_in_all() == 0 then return end
  if call("HLEN", keys.signatures) + act.new_signatures_count >= MOST_SIGNATURES then
    local what = MOST_SIGNATURES .. " different combinations of type, capabilities and limits"
    return types.invalid("limits", "too_many_signatures", what .. " are queued already: use fewer")
  end
end
