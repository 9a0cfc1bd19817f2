-- Relief: which waiting task runs are shortened or halted for (docs/tiers.md). It is the best that a free slot could run if it lacked
-- nothing but tiers that others may lose, or the best that could run in the slot of a session.

local MOST_LOOKS = 128 -- at sub-queues
local MOST_HEADS = 32 -- of a lot

-- The tiers that a sub-queue lacks, shortest first, and anything else that it lacks.
local function lacking_of(sub)
  if limits.is_paused_type(sub) then return NONE, limits.blocking(sub) end
  local class, lacking = subs.class(sub), {}
  for _, need in ipairs(subs.needs(sub)) do
    local limit, tier = limits.of(need.name), tiers.of_limit(need.name)
    local room = limits.room(limit, class, get(limit, "hold") == sub)
    if room < need.units then
      if not tier or room + limits.kept(limit, class) < 0 or get(limit, "paused") then return NONE, need end -- one more would not help
      lacking[#lacking + 1] = tier
    end
  end
  table.sort(lacking, function(a, b) return a.index < b.index end)
  return lacking, nil
end

-- What has to be taken back so that a sub-queue can start: an elastic run and its new tier, a session, or both. nil: nothing helps.
local function remedy(lacking, serves)
  local least, most, all = lacking[1], lacking[#lacking], tiers.all()
  local found = {}
  if least.index == 1 then
    found.session = revoking.session_for(serves)
    if not found.session then return nil end
    least = lacking[2]
  end
  if least then
    found.run = revoking.victim(most)
    if not found.run then return nil end
    found.to = all[least.index - 1]
  end
  return found
end

-- The best head of a lot that lacks tiers only: those that lack something else by now wait for that instead.
local function head_of(lot, lane, steps)
  for _, member in ipairs(up_to(ordered(keys.parked(lot)), math.huge, MOST_HEADS)) do
    local sub = names.about(member)
    local queued, tag = first(subs.queue(sub))
    local lacking, other = lacking_of(sub)
    steps.left = steps.left - 1
    if other and not tiers.of_limit(other.name) then
      lots.place(sub, names.seq_of(queued), tag, other)
    elseif #lacking > 0 and not revoking.is_under_way(names.about(queued)) then
      return {
        class = lane.class, turn = choice.turn_of(lane.class, lane.promoted), tag = tag, seq = names.seq_of(queued), id = names.about(queued),
        lacking = lacking, lane = lane.name,
      }
    end
    if steps.left <= 0 then return nil end
  end
end

-- The best of the heads that are parked at a tier in these lanes (name -> lane) and for which there is a remedy.
local function best_parked(lanes, serves)
  local best, remedy_of_best, seen, steps = nil, nil, {}, {left = MOST_LOOKS}
  for _, tier in ipairs(tiers.all()) do
    for _, lot in ipairs(members(ordered(keys.lots(tier.limit)))) do
      local _, _, name = names.cut_lot(lot)
      local lane = not seen[lot] and lanes[name]
      seen[lot] = true
      local head = lane and steps.left > 0 and head_of(lot, lane, steps)
      if head and (not best or choice.is_better(head, best)) then
        local found = remedy(head.lacking, serves)
        if found then best, remedy_of_best = head, found end
      end
    end
  end
  queues.reindex()
  return best, remedy_of_best
end

local function by_name(list, open)
  local lanes = {}
  for _, lane in ipairs(list) do
    if open or lane.place == "0n" then lanes[lane.name] = lane end
  end
  return lanes
end

local function is_possible()
  return #tiers.all() > 0 and backlog.queued_in_all() > 0 and revoking.has_any()
end

local function anybody() return true end

-- Does a task wait for tiers that could be given back, and rank before `head` (nil: nothing can start)? The slot for it is free.
function relief.is_before(head, lanes, open)
  if not is_possible() then return nil end
  local parked, found = best_parked(by_name(lanes, open), anybody)
  if parked and (not head or choice.is_better(parked, head)) then return parked, found end
end

-- Takes back what this head needs. One in an act; a second one is refused.
function relief.begin(head, found)
  if act.relieved then return false end
  act.relieved = true
  for _, t in ipairs({found.run or found.session, found.run and found.session}) do revoking.begin_for(t, head) end
  if found.run then revoking.shorten(found.run, found.to, "a waiting task needs its tier") end
  if found.session then revoking.halt(found.session) end
  return true
end

-- Idle workers serve these lanes, and nothing can start there.
function relief.for_lanes(list)
  if not is_possible() then return end
  local steps = {left = MOST_LOOKS}
  -- this also parks what is shown, but cannot start
  if choice.best(list, true, steps) or steps.left == 0 then return end
  local head, found = relief.is_before(nil, list, true)
  if head then relief.begin(head, found) end
end

-- The best task that would start on a worker if one of its slots were free, and what then has to be taken back.
local function best_instead_of(t, me, open)
  local lanes, steps = choice.lanes_of(get(me, "profile")), {left = MOST_LOOKS}
  local sub, head = choice.best(lanes, open, steps)
  if steps.left == 0 then return nil end
  local parked, found = best_parked(by_name(lanes, open), function(other) return other.id == me.id end)
  if parked and (not head or choice.is_better(parked, head)) then return parked, found end
  if not sub or sessions.is_slot_free(subs.lane(sub)) then return nil end
  head.id = names.about(first(subs.queue(sub)))
  if revoking.is_under_way(head.id) then return nil end
  return head, {session = t}
end

-- All slots are taken, and one of them by a session: it is halted for the best waiting task that could start in its place.
function relief.for_slots()
  if not get(act.meta, "sessions") or not is_possible() then return end
  local best, chosen
  for _, id in ipairs(revoking.longest_idle()) do
    local t = records.find(id)
    local me = t and not t.known.stopping and workers.record(t.known.worker)
    local offer = me and get(me, "profile") and grants.offer_of(me, 0, 0, act.instant)
    if offer and offer.free == 0 then
      -- without a reserve all runs count alike
      local own = (tonumber(t.known.facts.priority) ~= 0 or number(me, "reserve") == 0) and 1 or 0
      local head, found = best_instead_of(t, me, offer.open + own > 0)
      if head and (not best or choice.is_better(head, best)) then best, chosen = head, found end
    end
  end
  if best then relief.begin(best, chosen) end
end
