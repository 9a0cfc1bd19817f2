-- Declared task types: what every task of a type gets in addition to what it requests.

local MOST_LIMITS, MOST_CAPABILITIES = 8, 16

function types.invalid(field, code, message)
  return {answer = "invalid", field = field, code = code, message = message}
end

-- What the code and the file declare of a type; read once per act.
function types.declared(task_type)
  local both = act.known_types[task_type]
  if not both then
    local code, file = "code:" .. task_type, "file:" .. task_type
    local known = load_fields(hash(keys.types), {code, file})
    local by_code, by_file = get(known, code), get(known, file)
    both = {code = by_code and cjson.decode(by_code) or NONE, file = by_file and cjson.decode(by_file) or NONE}
    act.known_types[task_type] = both
  end
  return both.code, both.file
end

-- Not by `<`, which depends on the locale of the server: the same set is always the same text.
local function by_bytes(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- In the order of their bytes.
function types.sorted_keys(set)
  local list = {}
  for key in pairs(set) do list[#list + 1] = key end
  table.sort(list, by_bytes)
  return list
end

-- Units by limit as one text, always the same for the same set.
function types.write_needs(units)
  local sorted = types.sorted_keys(units)
  for i, name in ipairs(sorted) do sorted[i] = name .. "=" .. int(units[name]) end
  return table.concat(sorted, ","), #sorted
end

-- The limits that every task of this type needs: name -> true.
function types.limits_of(task_type)
  local code, file = types.declared(task_type)
  local found = {}
  for _, declared in ipairs({code, file}) do
    for _, need in ipairs(limits.needs(declared.limits or "")) do found[need.name] = true end
  end
  return found
end

-- A task type that is declared to need this limit, or nil. Declarations are bounded by configuration, and few of them are decoded.
function types.that_needs(limit)
  local known = whole(keys.types)
  for field, text in pairs(known and known.known or NONE) do
    local may_need = text and string.find(text, limit .. "=", 1, true)
    if may_need and limits.units_of(limits.needs(cjson.decode(text).limits or ""), limit) then return string.match(field, "^%a+:(.*)$") end
  end
end

-- A task may request more units than its type, not fewer.
local function add_limits(spec, code, file)
  local units = {}
  for _, need in ipairs(limits.needs(code.limits or "")) do units[need.name] = need.units end
  for _, need in ipairs(limits.needs(file.limits or "")) do units[need.name] = need.units end
  for _, need in ipairs(limits.needs(spec.limits)) do units[need.name] = math.max(need.units, units[need.name] or 0) end
  local count = 0
  spec.limits = types.write_needs(units)
  for name in pairs(units) do count = count + (tiers.is_limit(name) and 0 or 1) end
  if count > MOST_LIMITS then
    local what = "names " .. count .. " with those of its type, at most " .. MOST_LIMITS .. " are accepted"
    return types.invalid("limits", "invalid_input", what)
  end
end

local function add_capabilities(spec, code, file)
  local all = {}
  for _, list in ipairs({spec.capabilities, code.capabilities or "", file.capabilities or ""}) do
    for name in string.gmatch(list, "[^,]+") do all[name] = true end
  end
  local sorted = types.sorted_keys(all)
  spec.capabilities = table.concat(sorted, ",")
  if #sorted > MOST_CAPABILITIES then
    local what = "names " .. #sorted .. " with those of its type, at most " .. MOST_CAPABILITIES .. " are accepted"
    return types.invalid("required_capabilities", "invalid_input", what)
  end
end

-- Gives a task what is declared of its type. A refusal, or nil.
function types.add_declared(spec)
  local code, file = types.declared(spec.type)
  if code.limits or file.limits or code.capabilities or file.capabilities then
    return add_limits(spec, code, file) or add_capabilities(spec, code, file)
  end
end

-- How long a run may take, how often it is tried again, and the shortest lease of a run (nil: as its worker asks for).
function types.bounds_of(spec)
  local code, file = types.declared(spec.type)
  return spec.timeout or file.timeout or code.timeout or spec.default_timeout,
    spec.max_retries or file.max_retries or code.max_retries or spec.default_retries,
    file.lease or code.lease
end

-- Was anything declared since this task was queued? Then its type may need more now.
function types.is_outdated(t)
  local seq = number(t, "seq")
  return seq and seq <= (number(act.meta, "declared_seq") or 0)
end

-- The limits and capabilities of a waiting task with what is declared of its type now, as texts; nil when they are the same. A
-- declaration only adds. One that cannot be met leaves the task as it is.
function types.needed_now(t)
  local facts = t.known.facts
  local code, file = types.declared(facts.type)
  local spec = {limits = facts.limits or "", capabilities = facts.capabilities or ""}
  if add_limits(spec, code, file) or add_capabilities(spec, code, file) then return nil end
  for _, need in ipairs(limits.needs(spec.limits)) do
    if not limits.of(need.name) then return nil end
  end
  if spec.limits == (facts.limits or "") and spec.capabilities == (facts.capabilities or "") then return nil end
  return spec.limits, spec.capabilities
end
