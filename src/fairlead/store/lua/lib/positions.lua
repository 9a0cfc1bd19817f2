-- Where a task that joins the queue stands: behind all of its effective priority and of better ones.

local PLACES = {[0] = {"0n", "0p"}, {"1n", "1p"}, {"2n"}}

-- How many are queued with this effective priority.
function positions.standing_in(class)
  local count = 0
  for _, place in ipairs(PLACES[class]) do count = count + backlog.standing_at(place) end
  return count
end

function positions.standing_in_all()
  return positions.standing_in(0) + positions.standing_in(1) + positions.standing_in(2)
end

function positions.next_position(class)
  local position = 1
  for better = 0, class do position = position + positions.standing_in(better) end
  return position
end
