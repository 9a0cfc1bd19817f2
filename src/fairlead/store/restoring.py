"""Rebuilds a namespace that the server has lost from records of the past: the acts, one per step."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import msgspec

from fairlead.errors import RestoreRefused
from fairlead.store.batches import in_parts
from fairlead.store.connection import Answer, pack
from fairlead.store.definitions import Definitions
from fairlead.store.epochs import Epochs, new_token
from fairlead.store.membership import Found, Standing, judge
from fairlead.store.policy import stored_policy
from fairlead.store.records import FACTS, read_record
from fairlead.store.scripts import SCHEMA
from fairlead.store.session import Part, Session

Fields = Mapping[bytes, bytes]

REFUSALS = {
    "changed": "The namespace has changed since it was looked at: run `fairlead restore` again.",
    "busy": "Another process restores this namespace: wait for it. One that was stopped is given up in 10 s.",
    "superseded": "Another process has begun to restore this namespace, and continues.",
    "uninitialised": "The data was lost again meanwhile: run `fairlead restore` again.",
}


class Ended(Protocol):
    """A recorded task or job that has ended."""

    @property
    def id(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def priority(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Known:
    """What is recorded of the namespace: by it a loss is noticed, and from it the namespace continues."""

    epoch: str
    beat: int
    position: int  # events that are recorded
    fence: int  # no greater one was given, as far as is known
    made: int  # nor a greater number of a task or a job
    #: Place -> the greatest tag of what has started there.
    started: Mapping[str, int] = field(default_factory=dict)


async def look(session: Session, known: Known) -> tuple[Standing, Found]:
    """How the data stands to what is recorded of it, whatever this process knows itself."""
    found = await Epochs(session).look()
    return judge(known.epoch, known.beat, found), found


class Restoring(Part):
    """One restore: the namespace is closed to everybody until its end, also when it is interrupted."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._token = new_token()
        self.reason = ""
        self.after = 0  # the last event that the server has
        self.now = 0  # ms

    async def begin(self, known: Known, standing: Standing, found: Found) -> None:
        policy, beginning = stored_policy(self._session.settings), asdict(known)
        beginning["started"] = [[place, tag] for place, tag in known.started.items()]
        reason = "gone" if standing == "gone" else "rolled_back"
        given = {"found": found.epoch, "reason": reason, "schema": SCHEMA, "policy": policy}
        answer = await self.run("begin", beginning | given)
        self.reason, self.after, self.now = answer["reason"], int(answer["after"]), int(answer["now"])

    async def run(self, step: str, given: Any = None) -> Answer:
        answer = await self._connection.run("restore", self._token, step, pack(given), self._session.clock())
        if words := REFUSALS.get(answer["answer"]):
            raise RestoreRefused(words)
        return answer

    async def define(self, definitions: Definitions) -> None:
        kinds = {
            "limits": definitions.limits,
            "keys": definitions.keys,
            "hashes": definitions.hashes,
        }
        rows = [
            {"kind": kind, "name": name, "fields": texts(fields)}
            for kind, named in kinds.items()
            for name, fields in named.items()
        ]
        rows += [
            {"kind": "sets", "name": name, "fields": scores} for name, scores in definitions.sets.items()
        ]
        await self.each("define", rows)

    async def rows(self, step: str, items: Iterable[dict[str, Any]]) -> list[Answer]:
        """What became of each."""
        rows: list[Answer] = []
        for part in in_parts(items):
            rows += (await self.run(step, part))["rows"]
        return rows

    async def settle(self, items: Iterable[dict[str, Any]]) -> int:
        """How many steps of these jobs were queued again."""
        return sum([(await self.run("settle", part))["again"] for part in in_parts(items)])

    async def each(self, step: str, items: Iterable[dict[str, Any]]) -> None:
        for part in in_parts(items):
            await self.run(step, part)

    async def end(self, hold_ms: int) -> float:
        """Returns in how many seconds the namespace opens: when all leases from before have ended."""
        answer = await self.run("end", {"hold": hold_ms})
        self._connection.membership.join(Found())  # whatever it knew: it looks again
        return max(0, int(answer["opens_at"]) - int(answer["now"])) / 1000


def texts(fields: Mapping[bytes, bytes]) -> dict[str, msgspec.Raw]:
    """Of any bytes: the scripts of the server have no other kind of string."""
    return {name.decode(): _as_text(value) for name, value in fields.items()}


def _as_text(value: bytes) -> msgspec.Raw:
    size = len(value)
    if size < 32:
        head = bytes([0xA0 | size])
    elif size < 1 << 8:
        head = bytes([0xD9, size])
    elif size < 1 << 16:
        head = b"\xda" + size.to_bytes(2, "big")
    else:
        head = b"\xdb" + size.to_bytes(4, "big")
    return msgspec.Raw(head + value)


def tags_of(records: Iterable[Fields]) -> dict[str, int]:
    """Place -> the greatest tag of these tasks, all of which have started."""
    tags: dict[str, int] = {}
    for fields in records:
        place, tag = fields.get(b"place"), fields.get(b"tag")
        if place and tag:
            tags[place.decode()] = max(tags.get(place.decode(), 0), int(float(tag)))
    return tags


def used_keys(rows: Iterable[Ended], records: Iterable[Fields]) -> list[dict[str, Any]]:
    """The idempotency keys of tasks or jobs that have ended."""
    found = []
    for row, fields in zip(rows, records, strict=True):
        names = (FACTS, b"key", b"digest", b"created")
        record = read_record({name: fields[name] for name in names if name in fields})
        if "key" in record and "digest" in record:
            one = {"key": record["key"], "digest": record["digest"], "created": int(record["created"])}
            found.append(one | {"id": row.id, "state": row.status, "priority": row.priority})
    return found
