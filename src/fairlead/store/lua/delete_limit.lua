-- Delete a limit that nothing needs: none of its units are held, no task that has not ended needs it, no acquire waits for it, and neither
-- a task type nor a settings file declares it.
--
-- Whether a running task needs a rate, or a limit that was a rate when the task started, is only in the record of the task. There may be
-- any number of them: each call looks at a page, from `cursor` on ("" at first). `taken` is what the first call replied.
--
-- ARGV     scope name cursor taken clock
-- RETURNS  ok | more cursor taken | limit_in_use limit by (file, type, waiting, running) of? (a type, or how many)
--          | unknown_limit | uninitialised
-- FLAGS    allow-oom

local AT_ONCE = 256
local stored = scope .. name
local limit = limits.of(stored)
if not limit then return {answer = "unknown_limit"} end

local function in_use(by, of)
  return {answer = "limit_in_use", limit = stored, by = by, of = of}
end

-- Changes whenever units of a rate are taken: a task that starts between two pages is noticed.
local function taken_so_far()
  return get(limit, "tat") or ""
end

local function needed_by(holder)
  local bare = string.match(holder, "^lease:(.*)$")
  if bare then return call("HGET", keys.lease(bare), "limit") == stored end
  local t = records.find(holder)
  return t and limits.units_of(limits.needs(t.known.facts.limits or ""), stored) ~= nil
end

-- Is it needed by a lease of this page? Returns also the cursor of the next page, unless it was the last.
local function look_at_leases()
  local page = call("ZSCAN", keys.leases, cursor == "" and "0" or cursor, "COUNT", AT_ONCE)
  for i = 1, #page[2], 2 do
    if needed_by(page[2][i]) then return true end
  end
  return false, page[1] ~= "0" and page[1] or nil
end

if get(limit, "declared:file") or tiers.of_limit(stored) then return in_use("file") end
local task_type = types.that_needs(stored)
if task_type then return in_use("type", task_type) end
local waiting = (number(limit, "waiting") or 0) + (number(limit, "delayed") or 0) + (number(limit, "waiters") or 0)
if waiting > 0 then return in_use("waiting", waiting) end
if (number(limit, "used") or 0) > 0 then return in_use("running") end

if get(limit, "kind") == "rate" or get(limit, "redefined") then
  if cursor ~= "" and taken ~= taken_so_far() then return in_use("running") end
  local needed, following = look_at_leases()
  if needed then return in_use("running") end
  if following then return {answer = "more", cursor = following, taken = taken_so_far()} end
end
tenants.share(limit, false)
limits.forget(limit)
commit()
return {answer = "ok"}
