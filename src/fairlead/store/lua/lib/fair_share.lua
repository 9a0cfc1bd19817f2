-- The books of fairness: start-time fair queueing tags, one account per place (docs/scheduler.md, Order).

local write, write_many = unit.write, unit.write_many
local hash, number, put = hashes.hash, hashes.number, hashes.put
local setting = acts.setting

local function account_of(place)
  local name = setting("budget") == 0 and string.sub(place, 1, 1) .. "n" or place
  local account = act.accounts[name]
  if not account then
    account = {name = name, key = keys.fin(name), fins = {}, v = number(act.meta, "virtual_" .. name) or 0}
    act.accounts[name] = account
  end
  return account
end

local function fin_of(account, key)
  local fin = account.fins[key]
  if fin == nil then
    fin = not account.cleared and not account.is_empty and tonumber(call("ZSCORE", account.key, key) or nil) or false
    account.fins[key] = fin
  end
  return fin and fin > account.v and fin or nil
end

local function set_fin(account, key, fin)
  account.fins[key] = fin or false
  account.changed = account.changed or {}
  account.changed[key] = true
end

local function set_virtual(account, v)
  if v > account.v then account.v, account.moved = v, true end
end

-- Expected milliseconds of a task type.
function fair_share.cost_of(task_type)
  return number(act.durations, task_type) or 1000
end

function fair_share.next_tag(place, key, cost, weight)
  local account = account_of(place)
  if account.is_empty == nil then
    -- where nobody waits there is rarely anything in it: then it need not be asked for keys, nor cleared
    account.is_empty = backlog.standing_at(place) == 0 and call("EXISTS", account.key) == 0
  end
  local tag = math.max(account.v, fin_of(account, key) or 0)
  set_fin(account, key, tag + math.max(1, math.floor(cost * 1000 / weight)))
  return tag
end

function fair_share.book_start(place, tag)
  set_virtual(account_of(place), tag)
end

-- The account has nobody waiting any more: all its keys start level in the next busy period.
function fair_share.close_books(place)
  local account = account_of(place)
  local greatest = 0
  for _, fin in pairs(account.fins) do
    if fin and fin > greatest then greatest = fin end
  end
  if not account.cleared and not account.is_empty then
    -- those already known here may have changed since they were stored; the first unknown one is as stored
    local known = 0
    for _ in pairs(account.fins) do known = known + 1 end
    local stored = call("ZREVRANGE", account.key, 0, known, "WITHSCORES")
    for i = 1, #stored, 2 do
      if account.fins[stored[i]] == nil then
        greatest = math.max(greatest, tonumber(stored[i + 1]))
        break
      end
    end
  end
  set_virtual(account, greatest)
  account.cleared, account.fins, account.changed = true, {}, {}
end

-- The run took `actual` ms instead of the `cost` it was charged for.
function fair_share.correct_books(place, key, actual, cost, weight)
  local account = account_of(place)
  local delta = math.floor((actual - cost) * 1000 / weight)
  local fin = fin_of(account, key)
  if fin then
    set_fin(account, key, fin + delta > account.v and fin + delta or nil)
  elseif delta > 0 then
    set_fin(account, key, account.v + delta)
  end
end

function fair_share.learn_duration(task_type, actual)
  local old = number(act.durations, task_type)
  if not old then
    if call("HLEN", keys.durations) >= 4096 then return end
    put(act.durations, task_type, math.max(1, actual))
  else
    put(act.durations, task_type, math.max(1, old + math.floor((actual - old) / 8)))
  end
end

function fair_share.write()
  for _, account in pairs(act.accounts) do
    if account.moved then put(act.meta, "virtual_" .. account.name, account.v) end
    if account.cleared and not account.is_empty then write({"DEL", account.key}) end
    local adds, removes = {"ZADD", account.key}, {"ZREM", account.key}
    for key in pairs(account.changed or NONE) do
      local fin = account.fins[key]
      if fin and fin > account.v then
        adds[#adds + 1] = fin
        adds[#adds + 1] = key
      else
        removes[#removes + 1] = key
      end
    end
    if not account.cleared then
      write_many(removes, 1)
      if account.moved then write({"ZREMRANGEBYSCORE", account.key, "-inf", account.v}) end
    end
    write_many(adds, 2)
  end
end
