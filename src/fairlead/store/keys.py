"""Every key of a namespace, for Python and for Lua, with its type, its end and what it holds.

A namespace `default` owns the keys that begin with `{fl:default}:`. The braces are the hash tag: all of them
live on one shard, so one script may touch them all. The Lua acts get this table as functions: `keys.meta`,
`keys.task(id)`.
"""

from dataclasses import dataclass

from fairlead.errors import InvalidInput
from fairlead.settings.processes import A_NAMESPACE, NAMESPACE


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    type: str
    meaning: str
    of: str = ""  # what one such key is about; "" for a key that exists once
    ends: str = "never"


#: Kept for the life of the namespace, bounded by configuration and not by traffic.
FIXED = (
    Key(
        "meta",
        "hash",
        "schema, epoch and beat, whether it is sealed, counters (seq, fence, fence_lead), policy, "
        "virtual times, "
        "streaks, the next alarm, when rates were used, "
        "since when the upkeep runs without a pause",
    ),
    Key("limits", "zset", "names of all limits: <name>, or <tenant>/<name> of a tenant's own"),
    Key(
        "limit",
        "hash",
        "what it allows, units used, its hold, what was declared, and one field per lease that holds it",
        of="name",
    ),
    Key("shared", "zset", "names of the operator's limits that every tenant may name"),
    Key("types", "hash", "<code or file>:<task type> -> what is declared of it there"),
    Key("pipelines", "hash", "<code or file>:<pipeline> -> its stages, each a list of steps"),
    Key(
        "declarations",
        "zset",
        "<types or pipelines>:<name> that code declares, by when a process last declared or confirmed it",
    ),
    Key("pace", "hash", "account -> usual microseconds of its runs; `new` becomes `old` when full", of="age"),
    Key("fin", "zset", "account -> finish tag in one place, until its virtual time passes", of="place"),
    Key("paused", "hash", "task types that may not start"),
    Key("declared", "zset", "limits that a file declares"),
    Key(
        "profiles",
        "hash",
        "what workers serve: t:<id> text, n:<id> workers, i:<digest> id, j:<id> what is left to move",
    ),
    Key("audiences", "hash", "audience -> the profiles in it"),
    Key("routes", "hash", "route (type and capabilities) -> its audience"),
    Key(
        "learnt",
        "hash",
        "of estimates: durations of runs by kind, how they fitted, and up to which event all was learnt",
    ),
    Key("metrics", "hash", "what is counted since the namespace exists (lua/lib/metrics.lua)"),
    Key("acquisitions", "hash", "what is counted of limits"),
    Key("counted", "zset", "limits that are counted separately; those that ended, by when"),
    Key("served", "hash", "what server processes count: requests, and calls of the store"),
    Key("samples", "stream", "what waited and what had been counted, each ten seconds of the last hour"),
    Key("crons", "hash", "cron -> ms of its last tick, or of when it was first seen"),
    Key("schedules", "hash", "cron -> its time zone and expression, for people"),
    Key("audit", "stream", "what was changed by hand: a chain of the latest 10,000 entries"),
    Key("keys", "zset", "API keys by when they end; those that ended long ago go when one is made"),
    Key("key", "hash", "an API key: the digest of its secret, what it may do, and how much", of="id"),
    Key("tasks", "stream", "ids of all tasks, by the number that each has as `made`"),
    Key("jobs", "stream", "ids of all jobs, likewise"),
    Key("events", "stream", "the outbox: an entry per act with its events, until recorded or over the cap"),
)

#: Alive while there is work, gone at rest.
LIVE = (
    Key("queue", "zset", "members (seq + task id) by fair-share tag, of one sub-queue", of="sub"),
    Key("order", "zset", "the members of all queues of one place, by tag", of="place"),
    Key("age", "zset", "the same by arrival", of="place"),
    Key("heads", "zset", "runnable sub-queues and markers by their first tag, of one lane", of="lane"),
    Key("parked", "zset", "sub-queues that lack the same units of one limit, in one lane", of="lot"),
    Key("lots", "zset", "lots with something parked, of one limit, or of all tiers (`tier:`)", of="limit"),
    Key("holders", "hash", "task (or lease:<id>) -> its units of one limit", of="limit"),
    Key("markers", "hash", "lot -> seq of its marker in the heads"),
    Key("home", "hash", "sub-queue -> seq of its head, and the lane or the lot that it is in"),
    Key("subs", "zset", "the sub-queues of one route", of="route"),
    Key(
        "presence",
        "zset",
        "<place>:<tenant> (d: delayed, r: with a worker) -> tasks of the tenant there, by when they came",
        of="where",
    ),
    Key("kinds", "hash", "route -> how many tasks of a tenant wait on it", of="tenant"),
    Key("patience", "zset", "sub-queues of overlapping limits by the instant they may ask for a hold"),
    Key("nested", "zset", "sub-queues of several limits that do not overlap, by when that was known"),
    Key("holds", "hash", "sub-queue -> since when, and the head its hold was made for"),
    Key("migrating", "zset", "waiting tasks of an older schema that are not queued again yet", of="place"),
    Key("waiting", "hash", "owner (tenant and user) -> how many of its tasks wait, queued or delayed"),
    Key("delayed", "zset", "delayed tasks (seq + task id) of one base priority, by run_at", of="priority"),
    Key("waits", "zset", "queued tasks, and acquires (lease:<id>), by when they give up"),
    Key("waiters", "zset", "acquires that wait for one limit, by priority and fair-share tag", of="limit"),
    Key("revisits", "zset", "limits whose waiting acquires are looked at again, by that time"),
    Key("leases", "zset", "tasks (and lease:<id> without a task) by the instant their units are freed"),
    Key("orphans", "zset", "leases whose record is gone; 1: what they hold is searched for, 0: it will be"),
    Key("refills", "zset", "lots of rate limits by the instant they have room again"),
    Key("running", "zset", "tasks a worker holds; score 0: base high, 1: not", of="worker"),
    Key("listed", "hash", "worker -> its profile, of those that may be given something"),
    Key("capacity", "hash", "worker -> its capacity, of those whose tasks are counted by tiers"),
    Key("elastic", "zset", "runs that may be shortened from this tier, the youngest first", of="tier"),
    Key("relief", "hash", "waiting task -> how many revocations for it are under way"),
    Key("sessions", "zset", "running interactive tasks by their last frame"),
    Key("attached", "zset", "those with a client, by the instant they end unless it says that it is there"),
    Key("idle", "hash", "idle line -> how many workers wait in it"),
    Key("idlers", "zset", "idle workers of one line, by their last sign", of="line"),
)

#: Gone by themselves.
PASSING = (
    Key("task", "hash", "the task", of="id", ends="its retention after it ended"),
    Key("job", "hash", "a job: plan, results, status", of="id", ends="its retention after it ended"),
    Key("frames", "list", "frames of a client that a handler has not fetched", of="id", ends="with its run"),
    Key("output", "list", "the latest chunks of output of a task", of="id", ends="with its task"),
    Key("dead", "zset", "failed and dead-lettered tasks by when they ended", ends="with its last member"),
    Key("deadof", "zset", "those of one tenant", of="tenant", ends="its retention after the last one ended"),
    Key("deadjobs", "zset", "failed jobs by when they ended", ends="with its last member"),
    Key(
        "finished",
        "zset",
        "completed and cancelled tasks and jobs by when they ended, as <bytes>:<task or job>:<id>",
        ends="with its last member",
    ),
    Key("used", "hash", "audiences that some route was seen to have", ends="when all routes were looked at"),
    Key(
        "lease",
        "hash",
        "a lease without a task, or an acquire that waits for one",
        of="id",
        ends="released or expired",
    ),
    Key("granted", "list", "wake-up calls for one acquire that waits", of="id", ends="30 s"),
    Key("workers", "zset", "workers by when they were last seen", ends="an hour after the last was seen"),
    Key("worker", "hash", "what it offers, state, last request", of="id", ends="an hour after it was seen"),
    Key("wake", "list", "wake-up calls for one idle worker", of="worker", ends="30 s"),
    Key("idempotency", "string", "digest, task, and how that ended", of="key", ends="its window"),
    Key(
        "ticket",
        "string",
        "whose socket ticket, or browser session, has this digest",
        of="digest",
        ends="30 s; a session after 12 h",
    ),
    Key(
        "curves",
        "hash",
        "how long tasks will wait, by lane and by limit; and what is expected at each limit",
        ends="a minute after it was made",
    ),
    # No version reads the forecast of another: a new form gets a new key.
    Key("forecast", "hash", "the same in an older form", ends="a minute after it was made"),
    Key("replicated", "string", "changed before replicas are waited for", ends="30 days after its last use"),
    Key("lags", "hash", "server process -> by how many ms its event loop was late, and when", ends="60 s"),
    Key("caretaker", "string", "the process that does the upkeep", ends="5 s after its last sign"),
    Key("recorder", "string", "the process that records the history", ends="15 s after its last sign"),
    Key("recent", "hash", "ended tasks by state, of ten seconds", of="bucket", ends="120 s"),
    Key("recentof", "hash", "<state>:<tenant> -> ended tasks, of ten seconds", of="bucket", ends="120 s"),
)

ALL = FIXED + LIVE + PASSING
CHANNEL = "live"  # where every act publishes its events
POLICY_CHANNEL = "policy"  # where a process reports that its settings differ from the policy in force
KEY_CHANNEL = "changed_keys"  # where the ids of API keys are published that were made or changed


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one namespace."""

    namespace: str

    def __post_init__(self) -> None:
        if not NAMESPACE.fullmatch(self.namespace):
            raise InvalidInput("namespace", A_NAMESPACE)

    @property
    def prefix(self) -> str:
        return f"{{fl:{self.namespace}}}:"

    @property
    def meta(self) -> str:
        return self.prefix + "meta"

    def key(self, name: str, of: str = "") -> str:
        return f"{self.prefix}{name}:{of}" if of else self.prefix + name


def key_functions() -> str:
    """The table as Lua: `keys.meta` is a name, `keys.task(id)` makes one. `keys.name` sets the namespace."""
    single = [key.name for key in ALL if not key.of]
    return "".join(
        [
            "local prefix\nlocal keys = {}\n",
            *(
                f'function keys.{key.name}({key.of}) return prefix .. "{key.name}:" .. {key.of} end\n'
                for key in ALL
                if key.of
            ),
            "function keys.name(meta)\n  if meta == keys.meta then return end\n",
            "  prefix = string.sub(meta, 1, -5)\n  keys.prefix = prefix\n",
            *(f'  keys.{name} = prefix .. "{name}"\n' for name in single),
            "end\n",
        ]
    )
