-- The outbox: every transition, in the order of the act, appended and published with it; and what is only published.
--
-- USES     begin

local events, told = {}, {}

-- `detail` is a table of small facts for history, or nil.
local function event(t, act, from, to, now, detail)
  events[#events + 1] = {t.id, act, from or "", to, now, number(t, "fence") or 0, detail and cjson.encode(detail) or "{}"}
end

-- For live listeners alone, and nothing to them but `detail`, which is JSON. Each is a message of its own: it may be large.
local function tell(t, act, now, detail)
  told[#told + 1] = cjson.encode({{t.id, act, get(t, "state"), get(t, "state"), now, number(t, "fence"), detail}})
end

on_commit(function()
  for _, message in ipairs(told) do write({"PUBLISH", prefix .. "live", message}) end
  if #events == 0 then return end
  for _, e in ipairs(events) do
    write({"XADD", events_key, "*", "task", e[1], "act", e[2], "from", e[3], "to", e[4], "at", e[5], "fence", e[6], "detail", e[7]})
  end
  -- Nobody has consumed for long: the oldest go, and meta.lost says how many. A recorder trims what it has stored.
  local most = setting("max_events")
  local over = call("XLEN", events_key) + #events - most
  if over > 0 then
    write({"HINCRBY", meta_key, "lost", over})
    write({"XTRIM", events_key, "MAXLEN", most})
  end
  write({"PUBLISH", prefix .. "live", cjson.encode(events)})
end)
