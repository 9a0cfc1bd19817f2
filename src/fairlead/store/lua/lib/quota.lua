-- What is due by time alone may be much, of many kinds at once. One act does a bounded part of it.

-- Of all kinds together: a task counts 1, and each limit that it names, which costs about as much, 1 more.
local MOST = 64

-- The share of the next kind is half of what is left, at least 1: no kind can keep the others from their turn.
function quota.share()
  return math.max(1, math.ceil((MOST - act.timed) / 2))
end

-- The work that moving a task is; without one, its record is gone.
function quota.work_of(t)
  return 1 + (t and #limits.needs(t.known.facts.limits or "") or 0)
end

-- Moves what is due in `set` until the share is spent; `move` returns the work that it was. Returns what is left of the share: when
-- that is nothing, more may be due.
function quota.move_due(set, instant, share, move)
  for _, member in ipairs(share > 0 and up_to(set, instant, share) or NONE) do
    if share <= 0 then break end
    local work = move(member)
    act.moved, act.timed, share = act.moved + 1, act.timed + work, share - work
  end
  return share
end
