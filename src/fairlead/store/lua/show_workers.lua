-- Return the workers of the last hour, unordered: up to `count`, fewer if their records have more than `room` bytes. `place` is where the
-- scan continues ("0" at first), `last` the last id that was returned from that place. `brief`: "1" without types and capabilities.
--
-- ARGV     place last count room brief clock
-- RETURNS  ok workers {id running state seen capacity reserve types? capabilities? name? version?}... size place last | uninitialised
-- FLAGS    allow-oom

local FIELDS = {"state", "seen", "capacity", "reserve", "name", "version", "types", "capabilities"}
local WITHOUT_OFFER = 6
local AT_A_PLACE = 200 -- constant: a page that begins at the same place again finds the same ids

local function worker_row(id)
  local row, size = {id = id, running = call("ZCARD", keys.running(id))}, #id
  local known = call("HMGET", keys.worker(id), unpack(FIELDS, 1, brief == "1" and WITHOUT_OFFER or #FIELDS))
  for i, value in ipairs(known) do
    row[FIELDS[i]] = value or nil
    size = size + (value and #value or 0)
  end
  for _, field in ipairs({"seen", "capacity", "reserve"}) do row[field] = tonumber(row[field]) or 0 end -- 0: its record has expired
  -- by the policy of the namespace: the caller may have other settings
  if now - row.seen > setting("worker_ttl") then row.state = "dead" end
  return row, size
end

local page = call("ZSCAN", keys.workers, place, "COUNT", AT_A_PLACE)
local ids = {}
for i = 1, #page[2], 2 do
  if page[2][i] > last then ids[#ids + 1] = page[2][i] end
end
table.sort(ids)

local list, size, following = {}, 0, {place = page[1], last = ""}
for i, id in ipairs(ids) do
  local row, bytes = worker_row(id)
  list[i], size = row, size + bytes
  if i < #ids and (i == tonumber(count) or size >= tonumber(room)) then
    following = {place = place, last = id}
    break
  end
end
return {answer = "ok", workers = list, size = size, place = following.place, last = following.last}
