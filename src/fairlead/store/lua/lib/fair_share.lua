-- Fair shares: start-time fair queueing tags, counted in starts, with one virtual time per place (docs/scheduler.md, Order).
--
-- A tag is given once and a finish tag (`fin`) is never lowered, so the tasks of one account keep the order in which they came.

local STRIDE = 100 -- of one start, for a thousandth of the usual duration and a weight of 1
local USUAL, LEAST_FACTOR, MOST_FACTOR = 1000, 125, 8000 -- thousandths
local MOST_ACCOUNTS = 10000 -- whose durations are remembered, in each of two generations

-- The virtual time of a place, and the finish tags of the accounts that are ahead of it.
local function ledger_of(place)
  local name = setting("budget") == 0 and string.sub(place, 1, 1) .. "n" or place
  local ledger = act.ledgers[name]
  if not ledger then
    ledger = {name = name, key = keys.fin(name), fins = {}, v = number(act.meta, "virtual_" .. name) or 0}
    act.ledgers[name] = ledger
  end
  return ledger
end

local function fin_of(ledger, account)
  local fin = ledger.fins[account]
  if fin == nil then
    fin = not ledger.cleared and not ledger.is_empty and tonumber(call("ZSCORE", ledger.key, account) or nil) or false
    ledger.fins[account] = fin
  end
  return fin and fin > ledger.v and fin or nil
end

local function set_virtual(ledger, v)
  if v > ledger.v then ledger.v, ledger.moved = v, true end
end

-- The usual microseconds of a run of this account; nil when none has ended yet.
local function pace_of(account)
  return number(hash(keys.pace("new")), account) or number(hash(keys.pace("old")), account)
end

-- What a start of an account costs compared with the mean of all, in thousandths; nil: the usual.
function fair_share.factor(account)
  local own, mean = pace_of(account), number(act.meta, "pace")
  local factor = own and mean and math.max(LEAST_FACTOR, math.min(MOST_FACTOR, math.floor(own * 1000 / mean)))
  return factor ~= USUAL and factor or nil
end

-- How far apart the starts of an account are.
function fair_share.stride(weight, factor)
  return math.max(1, math.floor(STRIDE * (factor or USUAL) / weight))
end

-- The tag of the first of `count` starts, each `stride` after the other; all of them are charged now.
function fair_share.reserve(place, account, stride, count)
  local ledger = ledger_of(place)
  if ledger.is_empty == nil then
    -- where no task waits it is usually empty: then accounts need not be looked up, nor removed
    ledger.is_empty = backlog.queued_at(place) == 0 and call("EXISTS", ledger.key) == 0
  end
  local tag = fair_share.next_tag(place, account)
  ledger.fins[account] = tag + count * stride
  ledger.changed = ledger.changed or {}
  ledger.changed[account] = true
  return tag
end

-- What an account has been charged for, after a loss of data.
function fair_share.charge(place, account, fin)
  local ledger = ledger_of(place)
  if fin <= (fin_of(ledger, account) or 0) then return end
  ledger.fins[account], ledger.changed = fin, ledger.changed or {}
  ledger.changed[account] = true
end

-- Newcomers do not overtake those that wait in the place, if nothing has started there since the loss of data.
function fair_share.begin_at_head(place)
  local ledger, _, tag = ledger_of(place), first(ordered(keys.order(place)))
  if tag and ledger.v == 0 then set_virtual(ledger, tag) end
end

-- The tag that the next task of this account gets.
function fair_share.next_tag(place, account)
  local ledger = ledger_of(place)
  return math.max(ledger.v, fin_of(ledger, account) or 0)
end

-- The tag of a start that was charged earlier: never before the virtual time.
function fair_share.reserved_tag(place, tag)
  return math.max(ledger_of(place).v, tag)
end

function fair_share.started(place, tag)
  set_virtual(ledger_of(place), tag)
end

-- No task waits in the place any more: all accounts start equal in the next busy period. Not while there are jobs: their later
-- steps have reserved tags, and would all be due at once.
function fair_share.run_dry(place)
  if get(act.meta, "jobs_open") then return end
  local ledger = ledger_of(place)
  local greatest = 0
  for _, fin in pairs(ledger.fins) do
    if fin and fin > greatest then greatest = fin end
  end
  if not ledger.cleared and not ledger.is_empty then
    -- accounts that are known here may have changed since they were stored; the first unknown one is as stored
    local known = 0
    for _ in pairs(ledger.fins) do known = known + 1 end
    local stored = call("ZREVRANGE", ledger.key, 0, known, "WITHSCORES")
    for i = 1, #stored, 2 do
      if ledger.fins[stored[i]] == nil then
        greatest = math.max(greatest, tonumber(stored[i + 1]))
        break
      end
    end
  end
  set_virtual(ledger, greatest)
  ledger.cleared, ledger.fins, ledger.changed = true, {}, {}
end

local function is_waited_in(place)
  return backlog.queued_at(place) > 0 or get(act.meta, "waiters_" .. place) ~= nil
end

-- A task or a waiter has left the place, perhaps the last.
function fair_share.left(place)
  if is_waited_in(place) then return end
  local other = string.sub(place, 1, 1) .. (string.sub(place, 2) == "n" and "p" or "n")
  if setting("budget") > 0 or not is_waited_in(other) then fair_share.run_dry(place) end
end

local function nearer(old, actual, share)
  return old + math.floor((actual - old) / share)
end

-- A run of this account took `ms`. It changes the spacing of later submits only.
function fair_share.learn(account, ms)
  local actual, mean, own = math.max(1, ms) * 1000, number(act.meta, "pace"), pace_of(account)
  local paces = hash(keys.pace("new"))
  put(act.meta, "pace", mean and nearer(mean, actual, 64) or actual)
  if not get(paces, account) and call("HLEN", paces.key) >= MOST_ACCOUNTS then
    write({"RENAME", paces.key, keys.pace("old")}) -- the older generation is dropped
  end
  put(paces, account, own and nearer(own, actual, 8) or actual)
end

function fair_share.write()
  for _, ledger in pairs(act.ledgers) do
    if ledger.moved then put(act.meta, "virtual_" .. ledger.name, ledger.v) end
    if ledger.cleared and not ledger.is_empty then write({"DEL", ledger.key}) end
    local adds = {"ZADD", ledger.key}
    for account in pairs(ledger.changed or NONE) do
      local fin = ledger.fins[account]
      if fin and fin > ledger.v then
        adds[#adds + 1] = fin
        adds[#adds + 1] = account
      end
    end
    if not ledger.cleared and ledger.moved then write({"ZREMRANGEBYSCORE", ledger.key, "-inf", ledger.v}) end
    write_many(adds, 2)
  end
end
