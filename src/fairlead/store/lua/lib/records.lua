-- The records of tasks. What was requested is one packed field, `facts`: it rarely changes, and most acts pass it on unread.
-- A record that an older version wrote has a separate field for each fact.

-- The fields that acts read of a task at once; of a record these are always `known`. Other fields are read when needed, and the
-- content, which may be large, by records.whole.
local FIELDS = {
  "facts", "state", "worker", "fence", "started", "deadline", "place", "told", "reported", "stopping", "wait_until", "emitted", "retries",
  "crashes", "losses", "waited", "chosen",
}
local FACTS = { -- what was requested, in a record of an older version
  "type", "priority", "timeout", "max_retries", "weight", "factor", "created", "capabilities", "limits", "fair", "tenant", "user_id", "job_id",
  "step", "key", "size", "made",
}

-- The record of a task with these fields; nil when there is none.
function records.find(id)
  local t = hash(keys.task(id))
  if not t.id then
    t.id = id
    load_fields(t, FIELDS)
    if t.known.facts then
      unpack_field(t, "facts")
    elseif t.known.state then
      gather(load_fields(t, FACTS), "facts", FACTS)
    end
  end
  return t.known.state and t or nil
end

-- With its content.
function records.whole(id)
  local t = whole(keys.task(id))
  return t and t.known.state and records.opened(t, id) or nil
end

-- All fields of which are known.
function records.opened(t, id)
  t.id = id
  if t.known.facts then unpack_field(t, "facts") else gather(t, "facts", FACTS) end
  return t
end

local function given(text) return text ~= "" and text or nil end

function records.make(spec, now)
  local timeout, max_retries, lease = types.bounds_of(spec)
  if spec.interactive then max_retries = 0 end -- a second run would meet no client
  local facts = {
    type = spec.type, priority = spec.priority, timeout = timeout, max_retries = max_retries, weight = spec.weight, created = now,
    capabilities = given(spec.capabilities), limits = given(spec.limits), fair = given(spec.fair), key = spec.key, size = #spec.parameters,
    lease = lease, elastic = spec.elastic, interactive = spec.interactive, digest = spec.key and spec.digest,
  }
  for fact, value in pairs(spec.facts or NONE) do facts[fact] = value end
  facts.made = listing.append(keys.tasks, spec.id)
  -- the factor at the time of the submit stays, in every place; a step has that of its job
  if not facts.step then facts.factor = fair_share.factor(spec.fair) end
  local t = new_hash(keys.task(spec.id), {
    parameters = spec.parameters, facts = facts, state = false, arrival = false, place = false, tag = false, seq = false,
  })
  t.id = spec.id
  return t
end

-- Changes a fact.
function records.change(t, fact, value)
  local facts = t.known.facts
  facts[fact] = value
  put(t, "facts", facts)
  if t.is_gathered then
    for _, older in ipairs(FACTS) do put(t, older, nil) end
  end
end

-- Lists a task that a version without lists has made. If it keeps each fact in a field, then this one too.
function records.list(t)
  local facts = t.known.facts
  if facts.made then return end
  facts.made = listing.append(keys.tasks, t.id)
  if t.is_gathered then put(t, "made", facts.made) else put(t, "facts", facts) end
end

-- The number of its run, from 1.
function records.attempt(t)
  return (number(t, "retries") or 0) + (number(t, "crashes") or 0) + (number(t, "losses") or 0) + 1
end

-- The bytes of its parameters.
function records.size_of(t)
  return t.known.facts.size or call("HSTRLEN", t.key, "parameters")
end

-- The tier that a task runs in, or asks for.
function records.tier_of(t)
  return t.known.facts.elastic and get(t, "tier") or t.known.facts.duration
end

-- By what it is expected to take as long as others (fairlead/estimates/durations.py).
function records.run_kind(facts, tier)
  return {facts.type, tier or "", facts.size_hint or "", facts.limits or "", facts.fair or ""}
end
