-- Admission: so many tasks may wait, in all and of each owner; one more is refused. What was accepted once never is.
--
-- USES     positions waiting

local delayed_before -- this act

-- Queued or delayed, with those of this act.
local function waiting_in_all()
  delayed_before = delayed_before or call("ZCARD", delayed_key)
  return delayed_before + newly_delayed + standing_in_all()
end

-- The ms in which one task ends, by those of the last minute: so soon there may be a place. "" when none ended.
local function pace()
  local ended = 0
  for bucket = math.floor(instant / 10000) - 5, math.floor(instant / 10000) do
    for _, count in ipairs(call("HVALS", recent_key(int(bucket)))) do ended = ended + count end
  end
  return ended > 0 and int(math.ceil(60000 / ended)) or ""
end

local function full(setting_name, count)
  if count >= (setting(setting_name) or math.huge) then return {"queue_full", setting_name, int(count), pace()} end
end

-- A refusal, or nil.
local function check_admission(spec)
  local facts = spec.facts or NONE
  local owner = owner_of(facts.tenant, facts.user_id)
  return owner and full("max_queued_per_user", number(hash(waiting_key), owner) or 0) or full("max_queued", waiting_in_all())
end
