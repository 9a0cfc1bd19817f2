-- All tasks and all jobs in the order in which they were accepted: two streams, `tasks` and `jobs`. The id of an entry is a number that
-- the record has too, as `made`. If the record is gone, or has another number because its id was used again, the entry is left over:
-- nobody is asked when a record expires. Readers skip such entries, and the sweep removes them.

local AT_ONCE = 128 -- entries of one list that one act looks at

-- Lists a new task or job as the newest. Returns its number.
function listing.append(list, id)
  local made = next_number("made")
  write({"XADD", list, int(made), "id", id})
  return made
end

-- The last number that a list ever had.
local function last_of(list)
  if call("EXISTS", list) == 0 then return 0 end
  local facts = call("XINFO", "STREAM", list)
  for i = 1, #facts, 2 do
    if facts[i] == "last-generated-id" then return tonumber(string.match(facts[i + 1], "^%d+")) end
  end
end

-- Lists what had this number before the data was lost. A number that was given again since is replaced by the next. Returns the number.
function listing.restore(list, made, id)
  local last = act.last_listed[list] or last_of(list)
  if made > last then
    acts.raise_number("made", made)
    write({"XADD", list, int(made), "id", id})
  else
    acts.raise_number("made", last)
    made = listing.append(list, id)
  end
  act.last_listed[list] = made
  return made
end

-- The record is deleted.
function listing.remove(list, made)
  local gone = act.unlisted[list] or {"XDEL", list}
  gone[#gone + 1] = text_of(made)
  act.unlisted[list] = gone
end

function listing.write()
  for _, gone in pairs(act.unlisted) do write_many(gone, 1) end
end

local function made_of_task(id)
  local t = records.find(id)
  return t and t.known.facts.made
end

local function made_of_job(id)
  return get(hash(keys.job(id)), "made")
end

-- Looks at the next entries after meta's `field`, and begins again after the last. Returns how many it removed, and whether more follow.
local function sweep_list(list, field, made_of)
  local entries = call("XRANGE", list, int((number(act.meta, field) or 0) + 1), "+", "COUNT", AT_ONCE)
  local gone, last = {"XDEL", list}, nil
  for _, entry in ipairs(entries) do
    last = string.match(entry[1], "^%d+")
    if tonumber(made_of(entry[2][2])) ~= tonumber(last) then gone[#gone + 1] = entry[1] end
  end
  write_many(gone, 1)
  local more = #entries == AT_ONCE
  put(act.meta, field, more and last or nil)
  return #gone - 2, more
end

function listing.sweep()
  local tasks_removed, more_tasks = sweep_list(keys.tasks, "swept_tasks", made_of_task)
  local jobs_removed, more_jobs = sweep_list(keys.jobs, "swept_jobs", made_of_job)
  return tasks_removed + jobs_removed, more_tasks or more_jobs
end
