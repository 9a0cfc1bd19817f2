-- Where a task that joins the queue stands: behind all of its effective priority and of better ones.
--
-- USES     waiting

local PLACES = {[0] = {"0n", "0p"}, {"1n", "1p"}, {"2n"}}

local function standing_in(class)
  local count = 0
  for _, place in ipairs(PLACES[class]) do count = count + standing_at(place) end
  return count
end

local function next_position(class)
  local position = 1
  for better = 0, class do position = position + standing_in(better) end
  return position
end
