"""The dead letters of a namespace, the latest first, one page at a time."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from fairlead.errors import InvalidInput
from fairlead.model.dead_letter import ALL_DEAD, DeadFilter, check_dead
from fairlead.model.states import REPLAYABLE
from fairlead.model.task import Content, Task, TaskPage
from fairlead.store.batches import read_in_pieces
from fairlead.store.connection import Connection, text
from fairlead.store.pages import Listing, Make
from fairlead.store.queries import read_task
from fairlead.store.records import TRACEBACK, read_facts, read_record
from fairlead.store.session import Part

FIELDS = ("state", "error", "type", "user_id")  # the last two are facts, except in records of older versions
CURSOR = re.compile("([0-9]{1,15})[.]([0-9a-f-]{36})")


class Place(NamedTuple):
    """Where a dead letter is in the list: those that ended in the same millisecond are ordered by id."""

    ended: int
    task_id: str

    def __str__(self) -> str:
        return f"{self.ended}.{self.task_id}"


class DeadLetters(Part):
    async def page(
        self,
        limit: int = 100,
        cursor: str = "",
        wanted: DeadFilter = ALL_DEAD,
        *,
        content: Content = msgspec.json.decode,
    ) -> TaskPage:
        """A page of those that are meant, the latest first, up to 1 MiB; continue with its `next_cursor`.

        A dead letter that is one from the first page to the last is on one of them, and on no other.
        """
        self._connection.membership.check()
        wanted.check()
        listed = Latest(self._connection, wanted, _made(content, wanted))
        found, behind = await listed.page_before(_read_cursor(cursor), limit)
        return TaskPage(found, str(behind) if behind else "")

    async def get(self, task_id: str) -> Task:
        """With the traceback of its last run; UnknownTask if it is no dead letter."""
        task = await read_task(self._connection, task_id)
        check_dead(task)
        return task


@dataclass(frozen=True)
class Latest(Listing[Task, Place]):
    connection: Connection
    wanted: DeadFilter
    make: Make[Task]
    kind = "task"

    async def entries(self, before: Place | None, count: int) -> list[tuple[Place, str]]:
        ends = [end for end in (before and before.ended, self.wanted.until) if end is not None]
        newest = min(ends, default="+inf")
        oldest = "-inf" if self.wanted.since is None else self.wanted.since
        size = count if before is None else count + 1
        while True:
            bounds = (newest, oldest, "WITHSCORES", "LIMIT", 0, size)
            (rows,) = await self.connection.read(("ZREVRANGEBYSCORE", self._key, *bounds))
            places = [Place(int(score), text(member)) for member, score in rows]
            behind = [place for place in places if before is None or place < before]
            if len(behind) >= count or len(rows) < size:
                return [(place, place.task_id) for place in behind[:count]]
            size *= 2  # others ended in the millisecond of `before`, and come before it

    @property
    def _key(self) -> str:
        keys, tenant = self.connection.keys, self.wanted.tenant
        return keys.key("dead") if tenant is None else keys.key("deadof", tenant)

    async def fitting(self, entries: Sequence[tuple[Place, str]]) -> Sequence[tuple[Place, str]]:
        if self.wanted.asks_for_times_alone:
            return entries
        key = self.connection.keys.key
        rows = await read_in_pieces(
            self.connection, [("HMGET", key("task", of), "facts", *FIELDS) for _, of in entries]
        )
        return [entry for entry, row in zip(entries, rows, strict=True) if self.wanted.fits(_record(*row))]


def _record(packed: bytes | None, *stored: bytes | None) -> dict[str, object]:
    fields = zip(FIELDS, stored, strict=True)
    return read_facts(packed) | {name: text(value) for name, value in fields if value is not None}


def _made(content: Content, wanted: DeadFilter) -> Make[Task]:
    """A dead letter from its record, unless it is none any more."""

    def make(task_id: str, stored: Mapping[bytes, bytes]) -> Task | None:
        record = read_record(stored, without=TRACEBACK)
        if record.get("state") not in REPLAYABLE or not wanted.fits(record):
            return None
        return Task.from_record(task_id, record, content)

    return make


def _read_cursor(cursor: str) -> Place | None:
    if not cursor:
        return None
    if not (match := CURSOR.fullmatch(cursor)):
        raise InvalidInput("cursor", "not returned by a previous page; omit it to start over")
    return Place(int(match[1]), match[2])
