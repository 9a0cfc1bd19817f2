-- Confirm that a process still declares these task types and pipelines: what nobody declares or confirms for a day is forgotten.
--
-- ARGV     types_named pipelines_named clock
-- RETURNS  ok missing (some are not declared any more) | uninitialised
-- FLAGS    allow-oom

local missing = false

local function confirm(kind, list)
  for _, name in ipairs(list) do
    if declarations.is_known(kind, name) then declarations.note(kind, name) else missing = true end
  end
end

confirm("types", cmsgpack.unpack(types_named))
confirm("pipelines", cmsgpack.unpack(pipelines_named))
commit()
return {answer = "ok", missing = missing}
