-- Where a waiting task is in the order.

local function rank_in(t, place)
  return call("ZRANK", keys.order(place), names.member(number(t, "seq"), t.id)) or 0
end

-- Those before it in its own place; all of the other place when it is their turn.
local function before_in_priority(t, place, class)
  local tag, own_member = number(t, "tag"), names.member(number(t, "seq"), t.id)
  local count = rank_in(t, place)
  local other = string.sub(place, 1, 1) .. (string.sub(place, 2) == "n" and "p" or "n")
  if setting("budget") == 0 then
    count = count + call("ZCOUNT", keys.order(other), "-inf", "(" .. int(tag))
    local level = call("ZRANGEBYSCORE", keys.order(other), tag, tag, "LIMIT", 0, 1000)
    for _, member in ipairs(level) do count = count + (member < own_member and 1 or 0) end
  elseif choice.turn_of(class, string.sub(place, 2) == "p") == 1 then
    count = count + backlog.queued_at(other)
  end
  return count
end

-- How many wait with a better priority than this: priority -> count, without those of which none waits; and all of them.
function ranks.better_than(class)
  local counts, all = {}, 0
  for better = 0, class - 1 do
    local count = backlog.queued_in(better)
    if count > 0 then counts[int(better)] = count end
    all = all + count
  end
  return counts, all
end

-- How many of its priority go before a queued task, how many wait with better ones, by priority, and all of these together.
function ranks.ahead_of(t, place)
  local class = subs.class(place)
  local before, counts, all = before_in_priority(t, place, class), ranks.better_than(class)
  return before, counts, before + all
end

-- How many are ahead of a queued task as the forecast counts: in better priorities, and in its own place.
function ranks.of(t, place)
  local _, better = ranks.better_than(subs.class(place))
  return better + rank_in(t, place)
end

-- The same for one that comes now with this tag. `has_joined`: it is queued already. Others that this act has queued are ahead of it.
function ranks.of_newcomer(place, tag, has_joined)
  local _, better = ranks.better_than(subs.class(place))
  local joined = (act.joined[place] or 0) - (has_joined and 1 or 0)
  return better + joined + call("ZCOUNT", keys.order(place), "-inf", int(tag))
end
