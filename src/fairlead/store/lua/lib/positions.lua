-- Where a task that joins the queue stands: behind all of its effective priority and of better ones.
--
-- USES     limits

local PLACES = {[0] = {"0n", "0p"}, {"1n", "1p"}, {"2n"}}
local standing = {} -- priority -> tasks queued in it, counted once per act and on from there

local function standing_in(class)
  if not standing[class] then
    standing[class] = 0
    for _, place in ipairs(PLACES[class]) do standing[class] = standing[class] + call("ZCARD", age_key(place)) end
  end
  return standing[class]
end

local function next_position(class)
  standing[class] = standing_in(class) + 1
  local position = 0
  for better = 0, class do position = position + standing_in(better) end
  return position
end
