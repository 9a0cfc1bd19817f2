"""A namespace as Fairlead 0.1.0 wrote it (schema 2): how it is loaded, and what it holds."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from fairlead.model.explanation import Blocker
from fairlead.model.job import Job
from fairlead.model.limit import Limit
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.settings import Fairness, Rate, ServiceSettings, Settings, Slots, TaskSettings
from fairlead.store.store import Store

FIXTURES = Path(__file__).parent / "fixtures"

#: The configuration file of the process that wrote the dump. Since then `gpu` was set to 3 slots by hand.
SETTINGS = Settings(
    fairness=Fairness(weights={"ann": 3.0}),
    limits={
        "gpu": Slots(limit=2),
        "api": Rate(count=60, period_seconds=3600, burst=3),
        "a": Slots(limit=1),
        "b": Slots(limit=1),
    },
    tasks={
        "render": TaskSettings(
            limits={"gpu": 1}, required_capabilities=["cuda"], timeout_seconds=7200, max_retries=4
        ),
        "call": TaskSettings(limits={"api": 1}),
    },
    services={"enhance": ServiceSettings(url="http://127.0.0.1:9/enhance", limit=2)},
    pipelines={"story": (("enhance",), ("chat", "image"), ("join",))},
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """The dump, and what the store that wrote it reported about its content (see fixtures/README.md)."""

    keys: list[Row]
    expected: dict[str, Any]

    @property
    def clock(self) -> int:
        """The time of the dump, ms."""
        return int(self.expected["clock"])

    @property
    def tasks(self) -> dict[str, Row]:
        """By id, as `summary_of_task` gave them."""
        return dict(self.expected["tasks"])

    def task(self, name: str) -> str:
        """The id of the task that the generator called so."""
        return str(self.expected["names"][name])

    def job(self, name: str) -> str:
        return str(self.expected["job_names"][name])

    def ids(self, *statuses: State) -> set[str]:
        return {task_id for task_id, row in self.tasks.items() if row["status"] in statuses}


def read_kept() -> Kept:
    kept = Kept(**json.loads((FIXTURES / "schema2.json").read_text()))
    (meta,) = (row for row in kept.keys if row["key"] == "meta")
    assert meta["content"]["schema"] == "2", "the dump must never be made again by a newer version"
    return kept


async def load(store: Store, *, unfinished: str = "") -> Kept:
    """Restores the dump in the store's namespace: types, scores, stream ids and times to live.

    `unfinished`: an act broke half-way and left writing this key to the next act.
    """
    kept, keys = read_kept(), store.connection.keys
    client: Any = store.connection.client
    pipe = client.pipeline(transaction=False)
    for row in kept.keys:
        commands = [*_commands(keys.prefix + row["key"], row)]
        if row["key"] == unfinished:
            left = msgspec.msgpack.encode(commands).decode("latin-1")
            commands = [["HSET", keys.meta, "unfinished", left]]
        for command in commands:
            pipe.execute_command(*(part.encode("latin-1") for part in command))
    await pipe.execute()
    return kept


def _commands(key: str, row: Row) -> Iterator[list[str]]:
    """The commands that write this key. Texts of the dump are bytes, read as latin-1."""
    content = row["content"]
    match row["type"]:
        case "hash":
            yield ["HSET", key, *chain.from_iterable(content.items())]
        case "zset":
            yield ["ZADD", key, *chain.from_iterable((repr(score), member) for member, score in content)]
        case "list":
            yield ["RPUSH", key, *content]
        case "string":
            yield ["SET", key, content]
        case "stream":
            for entry_id, fields in content:
                yield ["XADD", key, entry_id, *chain.from_iterable(fields.items())]
    if row["pttl"] >= 0:
        yield ["PEXPIRE", key, str(row["pttl"])]


# What is compared: the store under test must report the same of the dump as the store that wrote it.


def _plain(value: object) -> Any:
    """As JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _fields(thing: object, *names: str) -> Row:
    return {name: getattr(thing, name) for name in names}


async def summary_of_task(store: Store, task: Task) -> Row:
    """What a task is, without the fields that are empty or zero."""
    facts = {name: value for name, value in _fields(task, *COMPARED).items() if value}
    if task.error:  # what the versions since then keep of an error besides is not in the dump
        facts["error"] = _fields(task.error, "code", "message", "retriable")
    if task.step is not None:
        facts["step"] = task.step  # the first one is 0
    if task.status is State.QUEUED:
        why = await store.explain(task.task_id)
        full = [blocker.limit for blocker in why.blocked_by if _is_full(blocker)]
        facts |= {"promoted": True} if why.promoted else {}
        facts |= {"blocked_by": full} if full else {}
    summary = {"status": task.status, "priority": task.priority.word}
    summary |= {"effective_priority": task.effective_priority.word}
    return dict(_plain(summary | facts))


COMPARED = (
    *("task_type", "parameters", "required_capabilities", "limits", "user_id", "tenant", "trace_id"),
    *("concurrency_group", "concurrency_limit", "duration", "max_wait_seconds", "delay_seconds"),
    *("timeout_ms", "max_retries", "retry_count", "crash_count", "idempotency_key", "job_id"),
    *("created_at", "run_at", "started_at", "deadline", "lease_until", "completed_at"),
    *("fence", "assigned_worker_id", "result", "error", "progress"),
)


def _is_full(blocker: Blocker) -> bool:
    """False: it has room, which is held back for another task. Versions may differ in what they hold."""
    return blocker.paused or blocker.free_at is not None or blocker.used + blocker.needs > blocker.of


def summary_of_job(job: Job) -> Row:
    facts = _fields(job, "feature_name", "input_data", "status", "user_id", "tenant", "queued_at", "error")
    facts |= {"step": job.current_step_index, "priority": job.priority.word}
    facts |= {"original_priority": job.original_priority.word}
    facts["steps"] = [_fields(step, "name", "task_id", "attempts", "result") for step in job.steps]
    return dict(_plain(facts))


def summary_of_limit(limit: Limit) -> Row:
    facts = _fields(limit, "kind", "limit", "interval_us", "paused", "active", "waiting")
    of_slots = ("lease_id", "units", "is_task", "holder", "expires_at")
    slots = [_fields(slot, *of_slots) for slot in sorted(limit.slots, key=lambda slot: slot.lease_id)]
    return dict(_plain(facts | {"slots": slots}))


OF_KEYS = (
    "id",
    "name",
    "scopes",
    "tenant",
    "created_at",
    "expires_at",
    "revoked_at",
    "last_used_at",
    "replaces",
    "interval_us",
    "burst",
    "state",
)


async def summary_of_the_rest(store: Store) -> Row:
    """Everything except tasks, jobs and limits."""
    stats, pipelines = await store.stats(), store.jobs.pipelines
    tasks = (await store.list_tasks(limit=1000)).tasks
    outputs = {task.task_id: await store.outputs(task.task_id) for task in tasks}
    rest = {
        "dead_letters": sorted(task.task_id for task in (await store.dead_letters.page()).tasks),
        "queued": {priority: depth.depth for priority, depth in stats.queues.items()},
        "delayed": stats.delayed,
        "ended_last_minute": dict(stats.ended_last_minute),
        "workers": {one.worker_id: _fields(one, *OF_WORKERS) for one in stats.workers if one.state != "dead"},
        "outputs": {
            task_id: [_fields(one, "seq", "fence", "chunk") for one in chunks]
            for task_id, chunks in outputs.items()
            if chunks
        },
        "api_keys": [_fields(key, *OF_KEYS) for key in await store.api_keys.all()],
        "audit": (await store.audit.page()).entries,
        "crons": {name: (await store.crons.last(name))[0] for name in ("nightly", "hourly")},
        "pipelines": (await pipelines.page("", 1000))[0],
        "task_types": await pipelines.task_types(),
    }
    return dict(_plain(rest))


OF_WORKERS = (
    *("state", "capacity", "reserve", "running"),
    *("task_types", "capabilities", "name", "version"),
)
