"""What only the recorder does: read the outbox with the records that its events are about, and trim it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fairlead.store.batches import read_in_pieces, size_of
from fairlead.store.epochs import Epochs
from fairlead.store.membership import Found
from fairlead.store.records import JobRow, Row, rows_of
from fairlead.store.session import Part

MOST_ENTRIES = 256  # each with the events of an act
MOST_EVENTS = 1_000  # of a batch, but for those of its last act
ROOM = 8 * 1024 * 1024  # bytes of the records of a batch, but for those of its last act
RECORDS_AT_ONCE = 200

Fields = dict[bytes, bytes]


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


class Outbox(Part):
    async def first(self) -> int:
        """The number of the first event that is, or will be, in the outbox."""
        meta = self._connection.keys.meta
        ((gone,),) = await self._connection.read(("HMGET", meta, "events_gone"))
        return int(gone or 0) + 1

    async def recorded(self, last: Entry) -> int:
        """All events up to the end of this act are recorded: they are dropped from the outbox."""
        return int((await self._session.run("recorded", last.id))["dropped"])

    async def after(self, position: int) -> Batch:
        """The next acts after this event. Raises StoreLost when the data is not what this process knows."""
        await self._check()
        key = self._connection.keys.key("events")
        command = ("XRANGE", key, f"{position + 1}-0", "+", "COUNT", MOST_ENTRIES)
        (rows,) = await self._connection.read(command, paged=True)
        entries = [Entry(int(name.partition(b"-")[0]), rows_of(fields[1])) for name, fields in rows]
        batch = Batch(Found())
        await self._read_records(batch, _first(entries))
        batch.found = await self._check()  # what was read is of this life of the namespace, and no older
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

    async def _records(self, kind: str, ids: Iterable[str]) -> dict[str, Fields]:
        ids = [*ids]
        commands = [("HGETALL", self._connection.keys.key(kind, of)) for of in ids]
        return dict(zip(ids, await read_in_pieces(self._connection, commands), strict=True))

    async def _check(self) -> Found:
        return await Epochs(self._session).check()


def _first(entries: Sequence[Entry]) -> Sequence[Entry]:
    """As many as a batch takes."""
    count = 0
    for index, entry in enumerate(entries):
        count += len(entry.events)
        if count >= MOST_EVENTS:
            return entries[: index + 1]
    return entries
