-- Sub-queues: the tasks in them, and what a new head changes.

-- The tasks of a place by arrival.
function queues.age_of(place)
  local set = act.ages[place]
  if not set then
    set = ordered(keys.age(place))
    act.ages[place] = set
  end
  return set
end

function queues.threshold(place)
  local after = place == "2n" and "low_to_medium" or place == "1n" and "medium_to_high" or place == "1p" and "low_to_high"
  local ms = after and setting(after) or 0
  return ms > 0 and ms or nil
end

-- Queues task `t` (a record) in `place` at (tag, seq); its other fields are set by the caller.
function queues.enqueue(t, place, tag, seq)
  local sub, member = subs.of(place, t), names.member(seq, t.id)
  put_all(t, {"place", place, "tag", tag, "seq", seq})
  insert(subs.queue(sub), member, tag)
  insert(ordered(keys.order(place)), member, tag)
  insert(queues.age_of(place), member, number(t, "arrival"))
  presence.enter(t, place, number(t, "arrival"))
  backlog.count(t, 1, place)
  local after = queues.threshold(place)
  if after then alarm_at(number(t, "arrival") + after) end
  act.touched_subs[sub] = act.touched_subs[sub] or true
  act.entered_subs[sub] = (act.entered_subs[sub] or 0) + 1
  act.joined[place] = (act.joined[place] or 0) + 1
end

-- `starts_from`: the sub-queue of a task that is started.
function queues.dequeue(t, starts_from)
  local place = get(t, "place")
  local sub, member = starts_from or subs.of(place, t), names.member(number(t, "seq"), t.id)
  holds.left_by(sub, t.id, starts_from ~= nil)
  remove(subs.queue(sub), member)
  remove(ordered(keys.order(place)), member)
  remove(queues.age_of(place), member)
  presence.leave(t, place)
  backlog.count(t, -1, place)
  act.touched_subs[sub] = act.touched_subs[sub] or true
  fair_share.left(place)
end

-- The tag and the seq of a task that joins `place`.
function queues.next_position(t, place)
  local job, facts = jobs.job_of(t), t.known.facts
  local account, stride = facts.fair or "", fair_share.stride(tonumber(facts.weight) or 1, tonumber(facts.factor))
  if job and jobs.reserves(job, place) then return jobs.position(job, t, place, stride) end
  return fair_share.reserve(place, account, stride, 1), next_number("seq")
end

local function set_needs(t, needed, capabilities)
  records.change(t, "limits", needed ~= "" and needed or nil)
  records.change(t, "capabilities", capabilities ~= "" and capabilities or nil)
end

-- Applies what is declared of its type now to a waiting task: it moves, and keeps its position in the order. Did anything change?
function queues.declare_again(t)
  local place, tag, seq = get(t, "place"), number(t, "tag"), number(t, "seq")
  local needed, capabilities = types.needed_now(t)
  if not needed then return false end
  queues.dequeue(t)
  set_needs(t, needed, capabilities)
  queues.enqueue(t, place, tag, seq)
  queues.reindex()
  return true
end

-- The record of a queued task is gone: it was deleted, or the server lost it. Other tasks must not wait for it.
function queues.drop_missing(sub, member)
  local place = names.place_of(sub)
  local _, needed = names.cut_sub_queue(sub)
  remove(subs.queue(sub), member)
  remove(ordered(keys.order(place)), member)
  remove(queues.age_of(place), member)
  backlog.count_in(place, -1)
  limits.count(needed, -1, "waiting")
  next_number("missing_records")
  act.touched_subs[sub] = act.touched_subs[sub] or true
  queues.reindex()
end

function queues.enter(t, place)
  if types.is_outdated(t) then
    local needed, capabilities = types.needed_now(t)
    if needed then set_needs(t, needed, capabilities) end
  end
  queues.enqueue(t, place, queues.next_position(t, place))
end

-- Counts sub-queues of several limits: where many need the same limit, they wait for it together (lots.lua).
local function count_sub_queue(sub, by)
  if not subs.may_overlap(sub) then return end -- all that need tiers wait for them together
  for _, need in ipairs(subs.needs(sub)) do change_count(limits.of(need.name), "sub_queues", by) end
  change_count(act.meta, "wide_sub_queues", by)
end

-- A sub-queue that cannot start now is parked at once: claims need not look at it, and a rate shows it again when it refills.
local function reindex_sub(sub, how)
  local head, tag = first(subs.queue(sub))
  local position = get(hash(keys.home), sub)
  if not position then overlap.remember(sub) end -- even if all its tasks have left in this act
  if not head then
    if position then
      lots.remove(sub)
      remove(ordered(keys.subs(subs.route(sub))), sub)
      holds.forget(sub)
      count_sub_queue(sub, -1)
    end
    return
  end
  local seq = names.seq_of(head)
  if position and names.seq_of(position) == seq and how ~= "move" then return end
  if not position then
    add(ordered(keys.subs(subs.route(sub))), sub, 0)
    count_sub_queue(sub, 1)
  end
  lots.place(sub, seq, tag, limits.blocking(sub))
  if how ~= "move" then holds.watch(sub, names.about(head)) end
end

-- Updates heads, lots and markers for what was queued, taken and freed so far in this act.
function queues.reindex()
  local touched = act.touched_subs
  act.touched_subs = {}
  for sub, how in pairs(touched) do reindex_sub(sub, how) end
  if next(act.touched_lists) or next(act.touched_lots) then lots.reindex() end
end
