"""Everything a namespace holds as plain values, read in one atomic step when it is small.

The keys are listed first. One transaction then lists them again and reads them all: when both lists agree,
nothing was missed. A large namespace is not stopped for that long: its records are read in pieces, and the
picture may be torn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from redis.exceptions import RedisError, ResponseError

from fairlead.store.connection import Connection, translated
from fairlead.store.keys import ALL

Fields = dict[str, str]
Scores = dict[str, float]  # member -> score, in the order of the set

SMALL = 5000  # keys that are read in one step
PIECE = 1000
TRIES = 3

#: What is read of a task: all but its content, which may be large.
TASK_FIELDS = (
    *("state", "type", "priority", "capabilities", "limits", "created", "finished"),
    *("place", "tag", "seq", "arrival", "run_at", "wait_until"),
    *("worker", "fence", "started", "lease_until", "stopping", "reported"),
)
READS: dict[str, tuple[str, tuple[str | int, ...]]] = {
    "hash": ("HGETALL", ()),
    "zset": ("ZRANGE", (0, -1, "WITHSCORES")),
    "stream": ("XRANGE", ("-", "+")),
    "string": ("GET", ()),
    "list": ("LLEN", ()),
}
TYPES = {(key.name, bool(key.of)): key.type for key in ALL}
#: Run out by themselves, now or later. They grow with traffic: in a large namespace they are read in pieces.
TIMED = frozenset({"task", "worker", "wake", "idempotency", "recent"})


class Event(NamedTuple):
    task: str
    act: str
    before: str
    to: str
    at: int
    fence: int


@dataclass
class Snapshot:
    now: int  # ms
    hashes: dict[str, dict[str, Fields]] = field(
        default_factory=dict
    )  # key name -> what it is about -> fields
    sets: dict[str, dict[str, Scores]] = field(default_factory=dict)
    strings: dict[str, dict[str, str]] = field(default_factory=dict)
    ttls: dict[tuple[str, str], int] = field(default_factory=dict)  # ms; -1: none
    events: list[Event] = field(default_factory=list)
    strange: dict[str, str] = field(default_factory=dict)  # key -> what is wrong with it
    present: list[str] = field(default_factory=list)  # keys, without the prefix
    unfinished: int | None = None  # writes a broken act left for the next one
    torn: bool = False  # not read in one step
    lowered: frozenset[str] = frozenset()  # limits that may have more in use than they allow

    def hash(self, name: str) -> Fields:
        return self.hashes.get(name, {}).get("", {})

    def zset(self, name: str, of: str = "") -> Scores:
        return self.sets.get(name, {}).get(of, {})

    @property
    def meta(self) -> Fields:
        return self.hash("meta")

    @property
    def tasks(self) -> dict[str, Fields]:
        return self.hashes.get("task", {})

    @property
    def limits(self) -> dict[str, Fields]:
        return self.hashes.get("limit", {})

    @property
    def bare_leases(self) -> dict[str, Fields]:
        return self.hashes.get("lease", {})

    @property
    def queues(self) -> dict[str, Scores]:
        return self.sets.get("queue", {})

    @cached_property
    def leased(self) -> dict[str, Fields]:
        """The tasks in the hands of a worker: executing, or cancelled and not yet stopped."""
        return {i: t for i, t in self.tasks.items() if t.get("state") == "executing" or "stopping" in t}

    @cached_property
    def stories(self) -> dict[str, list[list[Event]]]:
        """The events of each task, a list per life: once its record has run out, an id may be used again."""
        stories: dict[str, list[list[Event]]] = {}
        for event in self.events:
            lives = stories.setdefault(event.task, [])
            if not lives or event.act == "submit":
                lives.append([])
            lives[-1].append(event)
        return stories

    def status_of(self, task: str) -> str:
        """In words."""
        if task not in self.tasks:
            return f"there is no task {task}"
        record = self.tasks[task]
        stopping = " (its worker has not confirmed yet)" if "stopping" in record else ""
        return f"task {task} is {record.get('state', 'without a state')}{stopping}"


def number(fields: Mapping[str, str], name: str) -> int:
    """A field as a whole number; 0 when it is not there or none."""
    try:
        return int(fields.get(name, 0))
    except ValueError:
        return 0


def split(key: str) -> tuple[str, str]:
    """`task:a` -> what kind of key it is, and what it is about."""
    name, _, of = key.partition(":")
    return name, of


async def take(connection: Connection, now_ms: int | None = None, lowered: Iterable[str] = ()) -> Snapshot:
    try:
        return await _take(connection, now_ms, frozenset(lowered))
    except (RedisError, OSError) as problem:
        raise translated(problem) from problem


async def _take(connection: Connection, now_ms: int | None, lowered: frozenset[str]) -> Snapshot:
    keys = await _list_keys(connection)
    for _ in range(TRIES):
        if len(keys) > SMALL:
            break
        listing = ("SCAN", 0, "MATCH", connection.keys.prefix + "*", "COUNT", SMALL)
        answer = await _read(connection, [listing, ("TIME",), *_commands(connection, keys)])
        (cursor, found), time, *replies = answer
        again = _sorted(connection, found) if cursor == 0 else await _list_keys(connection)
        if again == keys:
            return _snapshot(keys, replies, _ms(time) if now_ms is None else now_ms, lowered)
        keys = again
    return await _take_in_pieces(connection, keys, now_ms, lowered)


async def _take_in_pieces(
    connection: Connection, keys: list[str], now_ms: int | None, lowered: frozenset[str]
) -> Snapshot:
    bounded = [key for key in keys if split(key)[0] not in TIMED]
    records = [key for key in keys if split(key)[0] in TIMED]
    time, *replies = await _read(connection, [("TIME",), *_commands(connection, bounded)])
    for start in range(0, len(records), PIECE):
        replies += await _read(connection, _commands(connection, records[start : start + PIECE]))
    snapshot = _snapshot(bounded + records, replies, _ms(time) if now_ms is None else now_ms, lowered)
    snapshot.torn = True
    return snapshot


Command = tuple[str | int, ...]


async def _list_keys(connection: Connection) -> list[str]:
    pattern = connection.keys.prefix + "*"
    return _sorted(connection, [key async for key in connection.client.scan_iter(match=pattern, count=SMALL)])


def _sorted(connection: Connection, found: Iterable[bytes]) -> list[str]:
    start = len(connection.keys.prefix)
    return sorted({_text(key)[start:] for key in found})


def _ms(time: tuple[int, int]) -> int:
    return time[0] * 1000 + time[1] // 1000


def _text(value: bytes) -> str:
    return value.decode(errors="surrogateescape")


def _commands(connection: Connection, keys: Iterable[str]) -> list[Command]:
    """One for each key, and one more where its time to live is asked for; none for an unknown key."""
    commands: list[Command] = []
    for key in keys:
        name, of = split(key)
        kind = TYPES.get((name, bool(of)))
        if kind is None:
            continue
        command, arguments = ("HMGET", TASK_FIELDS) if name == "task" else READS[kind]
        full = (connection.keys.prefix + key).encode(errors="surrogateescape")
        commands.append((command, full, *arguments))  # type: ignore[arg-type]
        if name in TIMED:
            commands.append(("PTTL", full))  # type: ignore[arg-type]
    return commands


async def _read(connection: Connection, commands: Iterable[Command]) -> list[Any]:
    pipeline = connection.client.pipeline(transaction=True)
    for command in commands:
        pipeline.execute_command(*command)
    replies: list[Any] = await pipeline.execute(raise_on_error=False)
    return replies


def _snapshot(keys: Sequence[str], replies: Iterable[Any], now: int, lowered: frozenset[str]) -> Snapshot:
    snapshot = Snapshot(now=now, present=list(keys))
    left = iter(replies)
    for key in keys:
        name, of = split(key)
        kind = TYPES.get((name, bool(of)))
        if kind is None:
            snapshot.strange[key] = "it is none of Fairlead's keys"
            continue
        reply = next(left)
        ttl = next(left) if name in TIMED else -1
        if isinstance(reply, ResponseError):
            snapshot.strange[key] = f"it should be a {kind} ({reply})"
        elif ttl != -2:  # else it ran out just now
            _keep(snapshot, name, of, kind, reply)
            snapshot.ttls[name, of] = ttl
    snapshot.lowered = lowered | {i for i, limit in snapshot.limits.items() if limit.get("lowered")}
    return snapshot


def _keep(snapshot: Snapshot, name: str, of: str, kind: str, reply: Any) -> None:
    if name == "task":
        values = zip(TASK_FIELDS, reply, strict=True)
        record = {field: _text(value) for field, value in values if value is not None}
        snapshot.hashes.setdefault(name, {})[of] = record
    elif kind == "hash":
        if name == "meta" and (left := reply.pop(b"unfinished", None)) is not None:
            snapshot.unfinished = len(msgspec.msgpack.decode(left, type=list[msgspec.Raw]))
        fields = {_text(name): _text(value) for name, value in reply.items()}
        snapshot.hashes.setdefault(name, {})[of] = fields
    elif kind == "zset":
        snapshot.sets.setdefault(name, {})[of] = {_text(member): float(score) for member, score in reply}
    elif kind == "stream":
        snapshot.events = [_event(entry) for _, entry in reply]
    elif kind == "string":
        snapshot.strings.setdefault(name, {})[of] = _text(reply)


def _event(entry: Mapping[bytes, bytes]) -> Event:
    fields = {_text(name): _text(value) for name, value in entry.items()}
    task, act, before, to = (fields.get(name, "") for name in ("task", "act", "from", "to"))
    return Event(task, act, before, to, number(fields, "at"), number(fields, "fence"))
