"""Pages of tasks and jobs: bounded in number and in bytes; and the lists of all of them, newest first."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from fairlead.checks import check_name, check_short, check_time, check_whole
from fairlead.errors import InvalidInput, SchemaTooOld
from fairlead.model.task import read_limits
from fairlead.store.batches import next_count, read_in_pieces, size_of
from fairlead.store.connection import Connection, text
from fairlead.store.records import read_facts

MOST_PER_PAGE = 1_000
PAGE_BYTES = 1024 * 1024  # of the records of a page, which ends early; the last one may exceed it
FIRST_RECORDS = 4  # read together, as long as nothing is known of their size
ROUNDS = 20  # looks into the list for one page
ENTRIES_PER_ROUND = 500
LISTED_SINCE = 5  # the first schema with lists
CURSOR = re.compile("[1-9][0-9]{0,14}")
A_BEGINNING = re.compile("[0-9a-f]{8}[0-9a-f-]{0,28}")  # of an id, so long that it is hardly anything else

T = TypeVar("T")
P = TypeVar("P")
#: What a stored record is, by its id; None: not what was looked for.
Make = Callable[[str, Mapping[bytes, bytes]], T | None]


@dataclass(frozen=True, slots=True)
class Slice(Generic[T]):
    """What exists of the first `looked` ids; all their records together have `size` bytes."""

    found: list[T]
    looked: int
    size: int
    more: bool  # ids were left


async def read_slice(
    connection: Connection, kind: str, ids: Sequence[str], make: Make[T], *, most: int, room: int = PAGE_BYTES
) -> Slice[T]:
    """At most `most`, as many as there is room for, and at least one: a page must make progress."""
    found: list[T] = []
    looked = size = 0
    count = FIRST_RECORDS
    while looked < min(most, len(ids)) and (size < room or not looked):
        piece = ids[looked : min(most, looked + count)]
        commands = [("HGETALL", connection.keys.key(kind, of)) for of in piece]
        records = await connection.read(*commands, paged=True)
        sizes = list(map(size_of, records))
        count = next_count(len(piece), sum(sizes))
        for of, record, record_size in zip(piece, records, sizes, strict=True):
            if size >= room and looked:
                break
            looked, size = looked + 1, size + record_size
            if record and (made := make(of, record)) is not None:
                found.append(made)
                await asyncio.sleep(0)  # one may take as long to read as others may be made to wait
    return Slice(found, looked, size, more=looked < len(ids))


class Listing(ABC, Generic[T, P]):
    """A list from its end, one page at a time. What a page begins behind, and each entry, has a place."""

    connection: Connection
    kind: str  # task or job
    make: Make[T]

    @abstractmethod
    async def entries(self, before: P | None, count: int) -> list[tuple[P, str]]:
        """Up to `count` places and ids behind this place; fewer: there are no more."""

    @abstractmethod
    async def fitting(self, entries: Sequence[tuple[P, str]]) -> Sequence[tuple[P, str]]:
        """Those that are looked for."""

    async def page_before(
        self, before: P | None, limit: int, room: int = PAGE_BYTES
    ) -> tuple[list[T], P | None]:
        """At most `limit`, and what the next page begins behind; None after the last.

        A page ends after bounded work, and may then be short or empty although it is not the last.
        """
        check_whole("limit", limit, MOST_PER_PAGE, least=1)
        count = min(limit + 1, ENTRIES_PER_ROUND)
        found: list[T] = []
        for _ in range(ROUNDS):
            entries = await self.entries(before, count)
            fitting = await self.fitting(entries)
            ids, left = [of for _, of in fitting], limit - len(found)
            some = await read_slice(self.connection, self.kind, ids, self.make, most=left, room=room)
            found += some.found
            if some.more:
                return found, fitting[some.looked - 1][0]
            if len(entries) < count:
                return found, None
            before, count, room = entries[-1][0], ENTRIES_PER_ROUND, room - some.size
            if len(found) >= limit or room <= 0:
                break
        return found, before


@dataclass(frozen=True, slots=True)
class Sought:
    """What people search for, besides fields with a certain value; what is None may be anything."""

    text: str | None = None  #: begins the id, or is in one of the `fields`, in any case
    fields: Sequence[str] = ()
    since: int | None = None  #: ms, of its acceptance
    until: int | None = None
    error: str | None = None  #: in the message of the error, in any case
    needs: str | None = None  #: a limit

    def check(self) -> None:
        """Raises InvalidInput."""
        for name, value in (("search", self.text), ("error", self.error)):
            check_short(name, value)
        if self.needs is not None:
            check_name("needs", self.needs)
        for name, time in (("since", self.since), ("until", self.until)):
            if time is not None:
                check_time(name, time)

    def is_id(self) -> bool:
        """Then nothing but ids is compared, and records need not be read."""
        others = (self.since, self.until, self.error, self.needs)
        is_beginning = self.text is not None and A_BEGINNING.fullmatch(self.text.lower())
        return bool(is_beginning) and all(one is None for one in others)

    @property
    def read_fields(self) -> tuple[str, ...]:
        """What has to be known of a record."""
        times = ("created",) if (self.since, self.until) != (None, None) else ()
        error = () if self.error is None else ("error",)
        return (*self.fields, *times, *error, *(() if self.needs is None else ("limits",)))

    def fits(self, of: str, record: Mapping[str, Any]) -> bool:
        text = (self.text or "").lower()
        has_text = of.startswith(text) or any(
            text in str(record.get(name) or "").lower() for name in self.fields
        )
        return has_text and self._is_in_time(record) and self._has_error(record) and self._needs_it(record)

    def _is_in_time(self, record: Mapping[str, Any]) -> bool:
        if self.since is None and self.until is None:
            return True
        created = int(record.get("created") or 0)
        return (self.since or 0) <= created and (self.until is None or created <= self.until)

    def _has_error(self, record: Mapping[str, Any]) -> bool:
        if self.error is None:
            return True
        known = msgspec.json.decode(record.get("error") or "{}", type=dict[str, Any])
        return self.error.lower() in str(known.get("message") or "").lower() and bool(known)

    def _needs_it(self, record: Mapping[str, Any]) -> bool:
        return self.needs is None or self.needs in read_limits(record.get("limits") or "")


EVERYTHING = Sought()


@dataclass(frozen=True)
class Newest(Listing[T, int]):
    """All tasks or jobs: those with the `wanted` fields (None: anything)."""

    connection: Connection
    kind: str
    wanted: Mapping[str, str | None]
    make: Make[T]
    sought: Sought = EVERYTHING
    after: int = 0  #: only those with a greater number

    async def page(self, limit: int, cursor: str, room: int = PAGE_BYTES) -> tuple[list[T], str]:
        """A page, and the cursor of the next one: "" after the last.

        What was listed before the first page was read is on one page, if it exists until then; new ones are
        on none.
        """
        found, before = await self.page_before(read_cursor(cursor), limit, room)
        return found, "" if before is None else str(before)

    async def entries(self, before: int | None, count: int) -> list[tuple[int, str]]:
        key, newest = self.connection.keys.key(f"{self.kind}s"), "+" if before is None else before - 1
        oldest = f"({self.after}" if self.after else "-"
        (entries,) = await self.connection.read(("XREVRANGE", key, newest, oldest, "COUNT", count))
        if before is None and not entries:
            await self._check_schema()
        return [(int(name.partition(b"-")[0]), text(of)) for name, (_, of) in entries]

    async def _check_schema(self) -> None:
        """Nothing is listed before a namespace of an older version was opened."""
        (schema,) = await self.connection.read(("HGET", self.connection.keys.meta, "schema"))
        if schema is not None and int(schema) < LISTED_SINCE:
            raise SchemaTooOld()

    async def fitting(self, entries: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
        """Those whose records exist, say that this is their number, and have the wanted fields."""
        if self.sought.is_id():
            entries = [entry for entry in entries if self.sought.fits(entry[1], {})]
        fields = ("made", *dict.fromkeys((*self.wanted, *self.sought.read_fields)))
        commands = [("HMGET", self.connection.keys.key(self.kind, of), "facts", *fields) for _, of in entries]
        rows = await read_in_pieces(self.connection, commands)
        fitting: list[tuple[int, str]] = []
        for (number, of), (packed, *stored) in zip(entries, rows, strict=True):
            plain = {
                name: text(value) for name, value in zip(fields, stored, strict=True) if value is not None
            }
            record = read_facts(packed) | plain
            wishes = {**self.wanted, "made": str(number)}
            is_wanted = all(wish in (None, str(record.get(name, ""))) for name, wish in wishes.items())
            if is_wanted and self.sought.fits(of, record):
                fitting.append((number, of))
        return fitting


def read_cursor(cursor: str) -> int | None:
    if not cursor:
        return None
    if not CURSOR.fullmatch(cursor):
        raise InvalidInput("cursor", "not returned by a previous page; omit it to start over")
    return int(cursor)
