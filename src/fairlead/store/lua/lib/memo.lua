-- What is made of a text alone never changes, so it may outlive an act: nothing else does but the profiles (audiences.lua). When there
-- are too many values of a kind, all of them are made again.

local MOST = 256 -- of a kind
local KINDS = {}

function memo.of(kind, text, make)
  local kept = KINDS[kind]
  if not kept or kept.count >= MOST then
    kept = {values = {}, count = 0}
    KINDS[kind] = kept
  end
  local value = kept.values[text]
  if value == nil then
    value = make(text)
    kept.values[text], kept.count = value, kept.count + 1
  end
  return value
end
