"""The outbox as the recorder reads it, with the records that its events are about."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from fairlead.store.batches import read_in_pieces, size_of
from fairlead.store.connection import text
from fairlead.store.epochs import Epochs
from fairlead.store.membership import Found
from fairlead.store.records import JobRow, Row, rows_of
from fairlead.store.session import Part

MOST_ENTRIES = 500  # each with the events of an act
MOST_EVENTS = 1_000  # of a batch, but for those of its last act
ROOM = 8 * 1024 * 1024  # bytes of the records of a batch, but for those of its last act
RECORDS_AT_ONCE = 200
LISTED_AT_ONCE = 100

Fields = dict[bytes, bytes]
Kind = Literal["task", "job"]


@dataclass(frozen=True, slots=True)
class Entry:
    """The events of an act, the first of which has this number."""

    first: int
    events: Sequence[Row]

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1

    @property
    def id(self) -> str:
        return f"{self.first}-{len(self.events)}"


@dataclass(slots=True)
class Batch:
    """Acts in their order, and what the store knew afterwards of their tasks and jobs; {}: nothing."""

    found: Found
    entries: list[Entry] = field(default_factory=list)
    tasks: dict[str, Fields] = field(default_factory=dict)
    jobs: dict[str, Fields] = field(default_factory=dict)

    @property
    def events(self) -> list[tuple[int, Row]]:
        """With their numbers."""
        return [(number, row) for one in self.entries for number, row in enumerate(one.events, one.first)]


class Lag(NamedTuple):
    """How far the recorder is behind."""

    events: int = 0
    seconds: float = 0  # since the oldest of them
    lost: int = 0  # ever: events that were dropped before they were recorded


class Outbox(Part):
    async def begin(self) -> int:
        """There is a recorder from now on. Returns the number of the first event that it can read."""
        await self._session.run("recorded", "")
        meta = self._connection.keys.meta
        ((gone,),) = await self._connection.read(("HMGET", meta, "events_gone"))
        return int(gone or 0) + 1

    async def recorded(self, last: Entry) -> int:
        """All events up to the end of this act are recorded; returns how many are kept for the estimator.

        The others are dropped from the outbox.
        """
        return int((await self._session.run("recorded", last.id))["kept"])

    async def lag(self) -> Lag | None:
        """None: there was never a recorder."""
        keys = self._connection.keys
        fields = ("events", "recorded", "events_gone", "lost")
        ((last, recorded, gone, lost),) = await self._connection.read(("HMGET", keys.meta, *fields))
        if recorded is None:
            return None
        position = max(int(recorded), int(gone or 0))
        command = ("XRANGE", keys.key("events"), f"{position + 1}-0", "+", "COUNT", 1)
        entries, time = await self._connection.read(command, ("TIME",))
        oldest = rows_of(entries[0][1][1])[0].at if entries else None
        waited = 0 if oldest is None else max(0, self._session.instant(time) - oldest)
        return Lag(max(0, int(last or 0) - position), waited / 1000, int(lost or 0))

    async def listed(self, kind: Kind, after: int) -> tuple[dict[str, Fields], int | None]:
        """Some records of the list of all tasks or jobs, and up to which number; None: there are no more."""
        key = self._connection.keys.key(f"{kind}s")
        (rows,) = await self._connection.read(("XRANGE", key, f"({after}", "+", "COUNT", LISTED_AT_ONCE))
        records = await self._records(kind, [text(of) for _, (_, of) in rows])
        last = int(rows[-1][0].partition(b"-")[0]) if rows else None
        return {of: fields for of, fields in records.items() if fields}, last

    async def after(self, position: int) -> Batch:
        """The next acts after this event. Raises StoreLost when the data is not what this process knows."""
        await self._check()
        key = self._connection.keys.key("events")
        command = ("XRANGE", key, f"{position + 1}-0", "+", "COUNT", MOST_ENTRIES)
        # what a fail-over may still take back is not history
        (rows,) = await self._connection.read(command, paged=True, confirmed=True)
        entries = [Entry(int(name.partition(b"-")[0]), rows_of(fields[1])) for name, fields in rows]
        batch = Batch(Found())
        await self._read_records(batch, _first(entries))
        # what was read is of this life of the namespace, and no older
        batch.found = await self._check(confirmed=True)
        return batch

    async def _read_records(self, batch: Batch, entries: Sequence[Entry]) -> None:
        """As many acts as there is room for."""
        room = ROOM
        while entries and room > 0:
            some: list[Entry] = []
            tasks, jobs = dict[str, None](), dict[str, None]()
            for entry in entries:
                some.append(entry)
                for event in entry.events:
                    tasks[event.task] = None
                    if isinstance(event.job, JobRow):
                        jobs[event.job.id] = None
                if len(tasks) + len(jobs) >= RECORDS_AT_ONCE:
                    break
            batch.tasks |= (read := await self._records("task", tasks.keys() - batch.tasks.keys()))
            batch.jobs |= (read_jobs := await self._records("job", jobs.keys() - batch.jobs.keys()))
            batch.entries += some
            room -= size_of([*read.values(), *read_jobs.values()])
            entries = entries[len(some) :]

    async def _records(self, kind: Kind, ids: Iterable[str]) -> dict[str, Fields]:
        ids = [*ids]
        commands = [("HGETALL", self._connection.keys.key(kind, of)) for of in ids]
        return dict(zip(ids, await read_in_pieces(self._connection, commands), strict=True))

    async def _check(self, *, confirmed: bool = False) -> Found:
        return await Epochs(self._session).check(confirmed=confirmed)


def _first(entries: Sequence[Entry]) -> Sequence[Entry]:
    """As many as a batch takes."""
    count = 0
    for index, entry in enumerate(entries):
        count += len(entry.events)
        if count >= MOST_EVENTS:
            return entries[: index + 1]
    return entries
