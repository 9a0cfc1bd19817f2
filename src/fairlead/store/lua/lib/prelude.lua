-- What every file of the library shares. The server shows a function its globals only while it runs, so they are bound by the
-- first call; as locals they are also found without a search.

local function globals()
  return string, math, table, tonumber, tostring, type, ipairs, pairs, next, unpack, pcall, error, cmsgpack, cjson
end

local string, math, table, tonumber, tostring, type, ipairs, pairs, next, unpack, pcall, error, cmsgpack, cjson

local function bind()
  string, math, table, tonumber, tostring, type, ipairs, pairs, next, unpack, pcall, error, cmsgpack, cjson = globals()
end

local call -- the only way to the server
local act -- the state of this call: acts.new makes it
local NONE = {} -- an empty table that is never written to

-- What nearly every file uses is known by its bare name. The files that define it:
local int, text_of, write, write_many -- unit
local hash, new_hash, whole, load_fields, get, number, put, put_all, change_count, unpack_field, gather -- hashes
local ordered, add, insert, remove, first, has_members, up_to, members -- sets
local setting, next_number, next_fence, alarm_at, start_at, commit -- acts
