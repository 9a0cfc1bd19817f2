-- Where a task that joins the queue stands: behind all of its effective priority and of better ones.

-- How many are queued with this effective priority.
function positions.standing_in(class)
  local counts = backlog.standing()
  if class == 0 then return counts["0n"] + counts["0p"] end
  if class == 1 then return counts["1n"] + counts["1p"] end
  return counts["2n"]
end

function positions.standing_in_all()
  local counts = backlog.standing()
  return counts["0n"] + counts["0p"] + counts["1n"] + counts["1p"] + counts["2n"]
end

function positions.next_position(class)
  local position = 1 + positions.standing_in(0)
  if class > 0 then position = position + positions.standing_in(1) end
  return class > 1 and position + positions.standing_in(2) or position
end
