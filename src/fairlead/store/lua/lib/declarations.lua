-- What code declares is forgotten when no process has declared or confirmed it for a day.
--
-- `declarations` has each task type ("types:<name>") and pipeline ("pipelines:<name>") that code declares, by when that was last done. What
-- a file declares is not in it: a file is declared as a whole, so what it no longer has is forgotten at once.

local HOUR, DAY = 3600000, 86400000
local AT_ONCE = 64

-- `kind`: "types" or "pipelines".
function declarations.note(kind, name)
  add(ordered(keys.declarations), kind .. ":" .. name, act.instant)
end

function declarations.is_known(kind, name)
  return get(hash(keys[kind]), "code:" .. name) ~= nil
end

-- What an older version has declared counts as declared now.
function declarations.note_older()
  for _, kind in ipairs({"types", "pipelines"}) do
    local known = whole(keys[kind])
    for field, text in pairs(known and known.known or NONE) do
      local name = text and string.match(field, "^code:(.*)$")
      if name and not call("ZSCORE", keys.declarations, kind .. ":" .. name) then declarations.note(kind, name) end
    end
  end
end

-- Tasks of this route wait, so its type is kept.
function declarations.note_waiting(route)
  local task_type = names.cut_route(route)
  if declarations.is_known("types", task_type) then declarations.note("types", task_type) end
end

-- Processes confirm their declarations once an hour, but not while they or the upkeep are down or asleep. When the upkeep begins again, all
-- of them get a day for it.
function declarations.note_pause(since_last, now)
  if since_last > HOUR then put(act.meta, "upkeep_since", now) end
end

-- Called when all routes were looked at, so types with waiting tasks are noted. A type that a live worker names is kept as well: a worker
-- that is not written in Python may have declared it once, when it started.
function declarations.forget_old(now)
  local before = now - DAY
  if (number(act.meta, "upkeep_since") or 0) > before then return end
  if act.changes_registry and not act.registry then return end -- a profile was forgotten in this act; the next pass does it
  local set = ordered(keys.declarations)
  for _, member in ipairs(up_to(set, before, AT_ONCE)) do
    local kind, name = string.match(member, "^(%a+):(.*)$")
    if kind == "types" and audiences.is_type_named(name) then
      declarations.note(kind, name)
    else
      remove(set, member)
      put(hash(keys[kind]), "code:" .. name, nil)
    end
  end
end
