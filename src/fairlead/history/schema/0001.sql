-- The whole history of any number of namespaces. BIGKEY is a primary key of 64 bits, BYTES a string of bytes. Instants are ms since
-- 1970 of the store's clock. Numbers that order tasks, jobs and events of all namespaces are made in `numbers.py`.

CREATE TABLE namespaces (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);

-- A life of a namespace: it begins with its first event, and again when an operator accepts what a loss has left.
CREATE TABLE generations (
  id INTEGER PRIMARY KEY,
  namespace INTEGER NOT NULL,
  epoch TEXT NOT NULL,
  opening TEXT NOT NULL,    -- first, new or restored
  begun_at BIGINT NOT NULL,
  first BIGINT NOT NULL,    -- the number of its first event
  position BIGINT NOT NULL, -- up to which event all is recorded; first - 1: none is
  beat BIGINT NOT NULL,     -- of the store when that was read
  audited TEXT NOT NULL,    -- up to which entry of the audit log, as there
  lost BIGINT NOT NULL,     -- events that left the outbox before they were recorded
  missing BIGINT NOT NULL,  -- records that were gone before they were read
  tasks_listed BIGINT,      -- while all records are read once: up to which number of the list; NULL: they were
  jobs_listed BIGINT,
  UNIQUE (namespace, epoch)
);

CREATE TABLE tasks (
  place BIGKEY,              -- newest last
  namespace INTEGER NOT NULL,
  id TEXT NOT NULL,
  task_type TEXT NOT NULL,
  status TEXT NOT NULL,
  priority INTEGER NOT NULL,
  user_id TEXT,
  tenant TEXT,
  job_id TEXT,
  step INTEGER,
  created_at BIGINT NOT NULL,
  started_at BIGINT,        -- the last time
  completed_at BIGINT,
  attempts INTEGER NOT NULL,
  fence BIGINT NOT NULL,
  waited_ms BIGINT,         -- until the first start
  ran_ms BIGINT,            -- the last run
  estimate_p50_ms BIGINT,   -- as it was given
  estimate_p90_ms BIGINT,
  error_code TEXT,
  error TEXT,
  traceback TEXT,
  parameters TEXT,
  result TEXT,
  record BYTES NOT NULL,    -- the other fields of the store's record, packed
  event BIGINT NOT NULL     -- the last event that this row contains
);
CREATE INDEX tasks_by_id ON tasks (id);
CREATE INDEX tasks_by_namespace ON tasks (namespace, place);
CREATE INDEX tasks_by_status ON tasks (namespace, status, place);
CREATE INDEX tasks_by_type ON tasks (namespace, task_type, place);
CREATE INDEX tasks_by_user ON tasks (namespace, user_id, place) WHERE user_id IS NOT NULL;
CREATE INDEX tasks_by_tenant ON tasks (namespace, tenant, place) WHERE tenant IS NOT NULL;
CREATE INDEX tasks_with_error ON tasks (namespace, place) WHERE error IS NOT NULL;
CREATE INDEX tasks_by_job ON tasks (job_id) WHERE job_id IS NOT NULL;

CREATE TABLE task_limits (
  namespace INTEGER NOT NULL,
  name TEXT NOT NULL,
  place BIGINT NOT NULL,
  PRIMARY KEY (namespace, name, place)
);

-- One run of a task.
CREATE TABLE attempts (
  task_id TEXT NOT NULL,
  fence BIGINT NOT NULL,
  namespace INTEGER NOT NULL,
  worker_id TEXT,
  started_at BIGINT,
  ended_at BIGINT,
  ended_by TEXT,            -- the act
  error_code TEXT,
  error TEXT,
  traceback TEXT,
  PRIMARY KEY (task_id, fence)
);

CREATE TABLE events (
  id BIGKEY,
  namespace INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  seq BIGINT NOT NULL,      -- among those of the task
  at BIGINT NOT NULL,
  act TEXT NOT NULL,
  before TEXT NOT NULL,     -- state; empty for a new task
  after TEXT NOT NULL,
  fence BIGINT NOT NULL,
  detail TEXT NOT NULL      -- JSON
);
CREATE INDEX events_by_task ON events (task_id, id);

CREATE TABLE jobs (
  place BIGKEY,
  namespace INTEGER NOT NULL,
  id TEXT NOT NULL,
  feature_name TEXT NOT NULL,
  status TEXT NOT NULL,
  priority INTEGER NOT NULL,
  user_id TEXT,
  tenant TEXT,
  created_at BIGINT NOT NULL,
  completed_at BIGINT,
  error_code TEXT,
  error TEXT,
  record BYTES NOT NULL,    -- all fields of the store's record, packed
  event BIGINT NOT NULL
);
CREATE INDEX jobs_by_id ON jobs (id);
CREATE INDEX jobs_by_namespace ON jobs (namespace, place);
CREATE INDEX jobs_by_status ON jobs (namespace, status, place);
CREATE INDEX jobs_by_user ON jobs (namespace, user_id, place) WHERE user_id IS NOT NULL;
CREATE INDEX jobs_by_tenant ON jobs (namespace, tenant, place) WHERE tenant IS NOT NULL;

CREATE TABLE audit (
  namespace INTEGER NOT NULL,
  entry TEXT NOT NULL,      -- its id in the store, padded so that text orders entries: `numbers.padded`
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  content TEXT NOT NULL,    -- JSON, byte for byte as the store has it, because its hash is checked
  hash TEXT NOT NULL,
  PRIMARY KEY (namespace, entry)
);
