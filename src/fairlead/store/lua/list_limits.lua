-- Return limits with their use: a page of all by name, those that contain `text` (in lower case), or those of `known` that exist.
-- `scope`: those that this tenant may name, or "" for all.
--
-- ARGV     scope known after count text clock
-- RETURNS  ok limits {name kind most used waiting room paused shared interval? hold?}... last? (there may be more after it)
--          | uninitialised
-- FLAGS    allow-oom

local LOOKED_AT = 1000 -- names that one act compares with the text

if known ~= "" then
  local list = {}
  for _, name in ipairs(cmsgpack.unpack(known)) do
    if limits.of(name) then list[#list + 1] = limits.shown(name) end
  end
  return {answer = "ok", limits = list}
end

local most, found = tonumber(count), {}
local looked_at = text == "" and most or LOOKED_AT
local all = tenants.names_after(scope, after, looked_at)
local last = #all == looked_at and all[#all] or nil
for i, name in ipairs(all) do
  if text == "" or string.find(string.lower(tenants.plain_name(name)), text, 1, true) then found[#found + 1] = limits.shown(name) end
  if #found == most then
    last = (i < #all or last) and name or nil
    break
  end
end
return {answer = "ok", limits = found, last = last}
