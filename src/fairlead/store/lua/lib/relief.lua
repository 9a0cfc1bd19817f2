-- Relief: which waiting task runs are shortened or halted for (docs/tiers.md). It is the best that a free slot could run if it lacked
-- nothing but tiers that others may lose, or the best that could run in the slot of a session.

local MOST_LOOKS = 128 -- at sub-queues
local MOST_HEADS = 32 -- of a lot

local function shortest_first(a, b) return a.index < b.index end

-- The tiers that a sub-queue lacks, shortest first, and anything else that it lacks.
local function lacking_of(sub)
  if limits.is_paused_type(sub) then return NONE, limits.blocking(sub) end
  local class, lacking = subs.class(sub), {}
  for _, need in ipairs(subs.needs(sub)) do
    local limit = limits.of(need.name)
    local room = limits.room(limit, class, limit.known.hold == sub)
    if room < need.units then
      local tier = tiers.all()[need.tier]
      if not tier or room + limits.kept(limit, class) < 0 or limit.known.paused then return NONE, need end -- one more would not help
      lacking[#lacking + 1] = tier
    end
  end
  table.sort(lacking, shortest_first)
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
    steps.left = steps.left - 1
    if not revoking.is_under_way(names.about(queued)) then
      local lacking, other = lacking_of(sub)
      if other and not tiers.all()[other.tier] then
        lots.place(sub, names.seq_of(queued), tag, other)
      elseif #lacking > 0 then
        return {
          class = lane.class, turn = choice.turn_of(lane.class, lane.promoted), tag = tag, seq = names.seq_of(queued),
          id = names.about(queued), lacking = lacking, lane = lane.name,
        }
      end
    end
    if steps.left <= 0 then return nil end
  end
end

local function longest_first(a, b) return a.index > b.index end

-- The tiers that a lot waits for. They are kept until tiers are configured otherwise.
local function tiers_of(parts)
  local all = tiers.all()
  if parts.configured ~= all then
    parts.configured, parts.tiers = all, {}
    for _, need in ipairs(parts.needs) do parts.tiers[#parts.tiers + 1] = all[need.tier] end
    table.sort(parts.tiers, longest_first)
  end
  return parts.tiers
end

-- Could anything be taken back for those that wait in a lot? Each of them lacks at least the tiers that the lot lacks.
local function may_help(parts, longest, has_sessions)
  local lacks, list = false, tiers_of(parts)
  for i = 1, #list do
    local tier = list[i]
    if limits.room(limits.of(tier.limit), parts.class, parts.is_owner) < 1 then
      if tier.index > 1 and tier.index > longest or tier.index == 1 and not has_sessions then return false end
      lacks = true
    end
  end
  return lacks
end

-- Does the first of a lot rank before `head` (nil: nothing can start)?
local function ranks_before(lot, lane, head)
  if not head then return true end
  local member, tag = first(ordered(keys.parked(lot)))
  return choice.is_better({
    class = lane.class, turn = choice.turn_of(lane.class, lane.promoted), tag = tag, seq = names.seq_of(member),
  }, head)
end

local function by_name(list)
  if not list.by_name then
    list.by_name = {}
    for _, lane in ipairs(list) do list.by_name[lane.name] = lane end
  end
  return list.by_name
end

-- While something waits: the index of the longest tier that could be given back (0: none), and whether there are sessions. nil: there is
-- nothing that may be taken back.
local function revocable()
  if #tiers.all() == 0 or backlog.queued_in_all() == 0 then return nil end
  local longest, has_sessions = revoking.longest(), get(act.meta, "sessions") ~= nil
  if longest > 0 or has_sessions then return longest, has_sessions end
end

-- The best of the heads that are parked at a tier in these lanes, for which there is a remedy and which rank before `head`.
local function best_parked(list, open, serves, head)
  local longest, has_sessions = revocable()
  if not longest then return nil end
  local best, remedy_of_best, steps, lanes = head, nil, {left = MOST_LOOKS}, by_name(list)
  for _, lot in ipairs(lots.of_tiers()) do
    local parts = names.lot_parts(lot)
    local lane = lanes[parts.lane]
    local parked = lane and (open or lane.place == "0n") and steps.left > 0 and may_help(parts, longest, has_sessions)
      and ranks_before(lot, lane, best) and head_of(lot, lane, steps)
    if parked and (not best or choice.is_better(parked, best)) then
      local found = remedy(parked.lacking, serves)
      if found then best, remedy_of_best = parked, found end
    end
  end
  queues.reindex()
  if remedy_of_best then return best, remedy_of_best end
end

local function anybody() return true end

-- Does a task wait for tiers that could be given back, and rank before `head` (nil: nothing can start)? The slot for it is free.
function relief.is_before(head, lanes, open)
  return best_parked(lanes, open, anybody, head)
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
  if not revocable() then return end
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
  local parked, found = best_parked(lanes, open, function(other) return other.id == me.id end, head)
  if parked then return parked, found end
  if not sub or sessions.is_slot_free(subs.lane(sub)) then return nil end
  head.id = names.about(first(subs.queue(sub)))
  if revoking.is_under_way(head.id) then return nil end
  return head, {session = t}
end

-- All slots are taken, and one of them by a session: it is halted for the best waiting task that could start in its place.
function relief.for_slots()
  if not get(act.meta, "sessions") or not revocable() then return end
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
