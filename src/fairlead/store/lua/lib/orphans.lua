-- Leases whose record was deleted. Nothing else says what they hold, so it is searched for: in all limits, then in all workers, a page
-- in each act. There may be any number of both.
--
-- One search is for all orphans that were known when it began (score 1); those that come later (score 0) wait for the next one. meta's
-- `search_at` says where it continues: "l" and the last limit, or "w" and the server's cursor in the workers.

local MOST_SOUGHT = 64 -- orphans of one search

-- `holder`: a task, or lease:<id>.
function orphans.add(holder)
  remove(ordered(keys.leases), holder)
  add(ordered(keys.orphans), holder, 0)
  alarm_at(0) -- the next act begins the search
end

-- The record of a holder whose id was used again and leased: what that lease needs is not an orphan.
local function leased_again(holder)
  local set = ordered(keys.leases)
  local is_leased = set.added[holder] or not set.removed[holder] and call("ZSCORE", set.key, holder)
  local bare = string.match(holder, "^lease:(.*)$")
  return is_leased and (bare and leases.bare(bare) or not bare and records.find(holder)) or nil
end

local function needs(record, limit)
  local facts = record.known.facts
  if not facts then return get(record, "limit") == limit end -- a lease without a task
  for _, text in ipairs({facts.limits or "", get(record, "optional") or "", get(record, "revoked") or ""}) do
    local units = limits.units_of(limits.needs(text), limit)
    if units then return units end
  end
end

-- The last limit of the page, or nil at the end.
local function search_limits(sought, after, count)
  local found = call("ZRANGEBYLEX", keys.limits, after == "" and "-" or "(" .. after, "+", "LIMIT", 0, count)
  for _, name in ipairs(found) do
    local held = call("HMGET", keys.holders(name), unpack(sought))
    for i, holder in ipairs(sought) do
      local again = held[i] and leased_again(holder)
      if held[i] and not (again and needs(again, name)) then limits.free(holder, {{name = name}}) end
    end
  end
  return #found == count and found[#found] or nil
end

-- The cursor of the next page, unless it was the last.
local function search_workers(sought, cursor, count)
  local page = call("ZSCAN", keys.workers, cursor, "COUNT", count) -- a rank would change with each heartbeat
  for i = 1, #page[2], 2 do
    local worker = page[2][i]
    local running = keys.running(worker)
    local held = call("ZMSCORE", running, unpack(sought))
    for j, holder in ipairs(sought) do
      local again = held[j] and leased_again(holder)
      if held[j] and not (again and get(again, "worker") == worker) then remove(ordered(running), holder) end
    end
  end
  return page[1] ~= "0" and page[1] or nil
end

local function begin_search()
  local sought = up_to(ordered(keys.orphans), 0, MOST_SOUGHT)
  for _, holder in ipairs(sought) do add(ordered(keys.orphans), holder, 1) end
  return sought
end

-- Searches a page for `sought`. Returns where to continue, or nil at the end.
local function search_from(at, sought, count)
  local where, from = string.sub(at, 1, 1), string.sub(at, 2)
  if where == "l" then
    local last = search_limits(sought, from, count)
    if last then return "l" .. last end
    from = "0"
  end
  local cursor = search_workers(sought, from, count)
  return cursor and "w" .. cursor
end

-- Searches a page of `count` limits or workers. Returns the work that it was, and whether there is more to do.
function orphans.search(count)
  local set = ordered(keys.orphans)
  if not first(set) then return 0, false end
  local at = get(act.meta, "search_at")
  local sought = at and call("ZRANGEBYSCORE", keys.orphans, 1, 1) or begin_search()
  local following = #sought > 0 and search_from(at or "l", sought, count) or nil
  put(act.meta, "search_at", following)
  if not following then
    for _, holder in ipairs(sought) do remove(set, holder) end
  end
  return count, first(set) ~= nil
end
