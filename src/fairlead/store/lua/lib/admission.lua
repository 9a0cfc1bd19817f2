-- Admission: so many tasks may wait, in all and of each owner; one more is refused. What was accepted once never is.

local int = unit.int
local hash, number = hashes.hash, hashes.number
local setting = acts.setting

-- Queued or delayed, with those of this act.
local function waiting_in_all()
  act.delayed_before = act.delayed_before or backlog.stored_delayed()
  return act.delayed_before + act.newly_delayed + positions.standing_in_all()
end

-- The ms in which one task ends, by those of the last minute: so soon there may be a place. "" when none ended.
local function pace()
  local ended = 0
  for bucket = math.floor(act.instant / 10000) - 5, math.floor(act.instant / 10000) do
    for _, count in ipairs(call("HVALS", keys.recent(int(bucket)))) do ended = ended + count end
  end
  return ended > 0 and int(math.ceil(60000 / ended)) or ""
end

function admission.full(setting_name, count)
  if count >= (setting(setting_name) or math.huge) then return {"queue_full", setting_name, int(count), pace()} end
end

-- A refusal, or nil.
function admission.check(spec)
  local facts = spec.facts or NONE
  local owner = backlog.owner_of(facts.tenant, facts.user_id)
  return owner and admission.full("max_queued_per_user", number(hash(keys.waiting), owner) or 0) or admission.full("max_queued", waiting_in_all())
end
