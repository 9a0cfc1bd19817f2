"""Everything a namespace holds as plain values, read in one atomic step when it is small; and a breach of it.

A script that may not write lists the keys and reads them. A large server is not stopped for that long: there
the keys are listed first, the indexes read in one step and the records in pieces: that snapshot may be torn.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import msgspec
from redis.exceptions import RedisError

from fairlead.store.batches import scan_keys
from fairlead.store.connection import Connection
from fairlead.store.doctor.texts import bytes_of, pairs_of, text_of
from fairlead.store.keys import ALL, PASSING
from fairlead.store.names import LOTS_OF_TIERS, PLACES, cut_position, route_of
from fairlead.store.records import Row, read_facts, rows_of
from fairlead.store.series import row_of
from fairlead.store.server_errors import translated

Fields = dict[str, str]
Scores = dict[str, float]  # member -> score, in the order of the set
Members = dict[tuple[str, str], float]  # (key, member) -> score

SMALL = 10_000  # keys on the server that are looked through in one step
PIECE = 500

#: What is read of a task: all but its content, which may be large.
TASK_FIELDS = (
    *("facts", "state", "type", "priority", "capabilities", "limits", "created", "finished"),
    *("place", "tag", "seq", "arrival", "run_at", "wait_until"),
    *("worker", "fence", "started", "lease_until", "stopping", "reported"),
    *("tenant", "user_id", "job_id", "step", "made"),
    *("tier", "optional", "revoked", "relieves"),
)
TYPES = {(key.name, bool(key.of)): key.type for key in ALL}
SINGLE = frozenset(key.name for key in ALL if not key.of)
#: Run out by themselves, now or later. They grow with traffic, the other keys with what waits and runs.
TIMED = frozenset(key.name for key in PASSING if key.of) - {"deadof", "lease"}
#: The lists of all tasks and jobs, as long as there are records.
LISTS = ("tasks", "jobs")


@dataclass
class Snapshot:
    now: int  # ms
    # key name -> what it is about -> fields
    hashes: dict[str, dict[str, Fields]] = field(default_factory=dict)
    sets: dict[str, dict[str, Scores]] = field(default_factory=dict)
    strings: dict[str, dict[str, str]] = field(default_factory=dict)
    ttls: dict[tuple[str, str], int] = field(default_factory=dict)  # ms; -1: none
    events: list[Row] = field(default_factory=list)
    audit: list[tuple[str, str]] = field(default_factory=list)  # entries with their hashes
    listed: dict[str, dict[int, str]] = field(default_factory=dict)  # by list: number -> id
    strange: dict[str, str] = field(default_factory=dict)  # key -> what is wrong with it
    unreadable: dict[str, str] = field(default_factory=dict)  # key -> what of its content cannot be decoded
    present: list[str] = field(default_factory=list)  # keys, without the prefix
    unfinished: int | None = None  # writes a broken act left for the next one
    torn: bool = False  # not read in one step
    lowered: frozenset[str] = frozenset()  # limits that may have more in use than they allow

    def hash(self, name: str) -> Fields:
        return self.hashes.get(name, {}).get("", {})

    def zset(self, name: str, of: str = "") -> Scores:
        return self.sets.get(name, {}).get(of, {})

    def members(self, *names: str) -> Members:
        """The members of all sorted sets of these names."""
        return {
            (join(name, of), member): score
            for name in names
            for of, members in self.sets.get(name, {}).items()
            for member, score in members.items()
        }

    @property
    def meta(self) -> Fields:
        return self.hash("meta")

    @property
    def tasks(self) -> dict[str, Fields]:
        return self.hashes.get("task", {})

    @property
    def jobs(self) -> dict[str, Fields]:
        return self.hashes.get("job", {})

    @property
    def limits(self) -> dict[str, Fields]:
        return self.hashes.get("limit", {})

    @property
    def bare_leases(self) -> dict[str, Fields]:
        """By their holder, as indexes name it."""
        leases = self.hashes.get("lease", {})
        return {f"lease:{i}": lease for i, lease in leases.items() if i not in self.waiters}

    @cached_property
    def waiters(self) -> dict[str, Fields]:
        """Acquires that wait, by the lease they wait for."""
        return {i: t for i, t in self.hashes.get("lease", {}).items() if t.get("state") == "waiting"}

    @property
    def queues(self) -> dict[str, Scores]:
        return self.sets.get("queue", {})

    @cached_property
    def leased(self) -> dict[str, Fields]:
        """The tasks in the hands of a worker: executing, or cancelled and not yet stopped."""
        return {i: t for i, t in self.tasks.items() if t.get("state") == "executing" or "stopping" in t}

    @cached_property
    def stories(self) -> dict[str, list[list[Row]]]:
        """The events of each task, a list per life: once its record has run out, an id may be used again."""
        stories: dict[str, list[list[Row]]] = {}
        for event in self.events:
            lives = stories.setdefault(event.task, [])
            if not lives or event.act == "submit":
                lives.append([])
            lives[-1].append(event)
        return stories

    def describe(self, task: str) -> str:
        """Its state, as a part of a sentence."""
        if task not in self.tasks:
            return f"there is no task {task}"
        record = self.tasks[task]
        stopping = " (its worker has not confirmed yet)" if "stopping" in record else ""
        return f"task {task} is {record.get('state', 'without a state')}{stopping}"


@dataclass(frozen=True, slots=True)
class Breach:
    """An invariant that does not hold."""

    invariant: str
    sentence: str
    # Identifies the breach: unlike the sentence, it does not change with the numbers.
    about: str = field(repr=False)

    def printable(self) -> "Breach":
        """Bytes of a key that are no text are shown by their numbers."""
        if self.sentence.isascii():
            return self
        return replace(self, sentence=self.sentence.encode(errors="backslashreplace").decode())

    def same_as(self, other: "Breach") -> bool:
        return (self.invariant, self.about) == (other.invariant, other.about)


def differences(
    expected: Mapping[tuple[str, str], float], found: Mapping[tuple[str, str], float]
) -> Iterator[tuple[str, str, float | None, float | None]]:
    """(key, member, expected score, found score) where they differ; None: not there."""
    if expected == found:
        return
    for (key, member), score in expected.items():
        have = found.get((key, member))
        if have != score:
            yield key, member, score, have
    for (key, member), have in found.items():
        if (key, member) not in expected:
            yield key, member, None, have


def number(fields: Mapping[str, str], name: str) -> int:
    """A field as a whole number; 0 if it is missing or not one."""
    return whole(fields.get(name, "0"))


def whole(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        return 0


def split(key: str) -> tuple[str, str]:
    """`task:a` -> what kind of key it is, and what it is about."""
    name, _, of = key.partition(":")
    return name, of


def join(name: str, of: str) -> str:
    return f"{name}:{of}" if of else name


async def take(
    connection: Connection,
    now_ms: int | None = None,
    lowered: Iterable[str] = (),
    before: Snapshot | None = None,
) -> Snapshot:
    """A snapshot; `before` says where else to look if this one cannot be taken in one step."""
    try:
        answer = await _read(connection)
        torn = answer is None
        if answer is None:
            answer = await _read_in_pieces(connection, before)
    except (RedisError, OSError) as problem:
        raise translated(problem) from problem
    (seconds, micros), rows = answer
    now = int(seconds) * 1000 + int(micros) // 1000 if now_ms is None else now_ms
    snapshot = Snapshot(now=now, torn=torn)
    for key, kind, content, ttl in rows:
        _keep(snapshot, text_of(key), kind.decode(), content, ttl)
    marked = (name for name, limit in snapshot.limits.items() if limit.get("lowered"))
    snapshot.lowered = frozenset([*lowered, *marked])
    return snapshot


async def _read(connection: Connection, keys: Iterable[str] = ()) -> Any:
    """[time, rows of (key, type, content, ttl)], of these keys or of all; None when they are too many."""
    names = [bytes_of(key) for key in keys]
    fields = msgspec.json.encode(TASK_FIELDS)
    client: Any = await connection.found_client()
    return await client.eval(
        _script(), 1, connection.keys.meta, connection.keys.prefix, SMALL, fields, *names
    )


@cache
def _script() -> str:
    return (files("fairlead.store.doctor") / "read.lua").read_text()


async def _read_in_pieces(connection: Connection, before: Snapshot | None) -> Any:
    keys = {*await scan_keys(connection)} | SINGLE | _places(before)
    records = sorted(key for key in keys if split(key)[0] in TIMED)
    time, rows = await _read(connection, sorted(keys.difference(records, LISTS)))
    rows += [await _read_list(connection, name) for name in LISTS]
    for start in range(0, len(records), PIECE):
        rows += (await _read(connection, records[start : start + PIECE]))[1]
    return time, rows


async def _read_list(connection: Connection, name: str) -> Any:
    """Its row, in pieces. What was listed before is there, as long as its record is."""
    client: Any = await connection.found_client()
    key, content, start = connection.keys.key(name), list[Any](), "-"
    kind = await client.type(key)
    while kind == b"stream" and (entries := await client.xrange(key, start, count=PIECE)):
        content += [(number, [one for pair in fields.items() for one in pair]) for number, fields in entries]
        start = f"({text_of(content[-1][0])}"
    return name.encode(), kind, content, -1


def _places(before: Snapshot | None) -> set[str]:
    """Keys that come and go with the traffic, and may be there again although the list of keys lacks them."""
    if not before:
        return set()
    names = {f"{kind}:{place}" for kind in ("age", "order") for place in PLACES}
    names |= {f"delayed:{priority}" for priority in range(3)} | {f"lots:{LOTS_OF_TIERS}"}
    for sub, text in before.hash("home").items():
        names |= {f"queue:{sub}", f"subs:{route_of(sub)}"}
        if position := cut_position(text):
            lot, _, lane = position.where.rpartition("@")
            names.add(f"heads:{lane}")  # of a lot, for its marker
            if lot:
                names.add(f"parked:{position.where}")
    names |= {f"{kind}:{name}" for kind in ("lots", "waiters", "holders") for name in before.limits}
    names |= {f"running:{worker}" for worker in before.hashes.get("worker", {})}
    return names.union(key for key in before.present if split(key)[0] not in TIMED)


def _keep(snapshot: Snapshot, key: str, kind: str, content: Any, ttl: int) -> None:
    if kind == "none":  # it went in between
        return
    snapshot.present.append(key)
    name, of = split(key)
    right = TYPES.get((name, bool(of)))
    if right is None:
        snapshot.strange[key] = "Fairlead has no such key"
        return
    if kind != right:
        snapshot.strange[key] = f"it should be a {right}, but is a {kind}"
        return
    snapshot.ttls[name, of] = ttl
    if name == "task":
        facts = {field: str(value) for field, value in _facts(snapshot, key, content[0]).items()}
        values = zip(TASK_FIELDS[1:], content[1:], strict=True)
        record = facts | {field: text_of(value) for field, value in values if value is not None}
        snapshot.hashes.setdefault(name, {})[of] = record
    elif kind == "hash":
        fields = pairs_of(content)
        if name == "meta":
            _open_meta(snapshot, fields)
        snapshot.hashes.setdefault(name, {})[of] = fields
    elif kind == "zset":
        scores = {member: float(score) for member, score in pairs_of(content).items()}
        snapshot.sets.setdefault(name, {})[of] = scores
    elif kind == "stream":
        _keep_stream(snapshot, name, [(text_of(entry), pairs_of(flat)) for entry, flat in content])
    elif kind == "string":
        snapshot.strings.setdefault(name, {})[of] = text_of(content)


def _facts(snapshot: Snapshot, key: str, packed: bytes | None) -> dict[str, Any]:
    try:
        return read_facts(packed or None)
    except msgspec.MsgspecError:
        snapshot.unreadable[key] = "field facts cannot be decoded"
        return {}


def _open_meta(snapshot: Snapshot, fields: Fields) -> None:
    """Some of its fields are packed: the policy is laid beside the others."""
    left, policy = fields.pop("unfinished", None), fields.pop("policy", None)
    try:
        if left is not None:
            snapshot.unfinished = len(msgspec.msgpack.decode(bytes_of(left), type=list[msgspec.Raw]))
    except msgspec.MsgspecError:
        snapshot.unreadable["meta"] = "field unfinished cannot be decoded"
    try:
        if policy is not None:
            numbers = msgspec.msgpack.decode(bytes_of(policy), type=dict[str, int | float | str])
            fields |= {name: str(value) for name, value in numbers.items()}
    except msgspec.MsgspecError:
        snapshot.unreadable["meta"] = "field policy cannot be decoded"


def _keep_stream(snapshot: Snapshot, name: str, entries: list[tuple[str, Fields]]) -> None:
    if name == "audit":
        snapshot.audit = [(entry.get("entry", ""), entry.get("hash", "")) for _, entry in entries]
    elif name in LISTS:
        snapshot.listed[name] = {
            whole(made.partition("-")[0]): entry.get("id", "") for made, entry in entries
        }
    else:
        for _, entry in entries:
            try:
                if name == "samples":
                    row_of(bytes_of(entry.get("sample", "")))
                else:
                    snapshot.events += rows_of(bytes_of(entry.get("events", "")))
            except msgspec.MsgspecError:
                snapshot.unreadable[name] = "an entry cannot be decoded"
