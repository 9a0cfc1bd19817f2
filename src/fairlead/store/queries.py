"""What people look at: a task and its output, those that can be replayed, pages of all, the task types."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead.checks import MOST_UNITS, check_name, check_short, check_task_id, check_whole
from fairlead.errors import InvalidInput, UnknownTask
from fairlead.model.priority import priority_named
from fairlead.model.reports import MOST_CHUNKS, Output
from fairlead.model.states import State
from fairlead.model.task import Content, Task, TaskPage
from fairlead.store.connection import text
from fairlead.store.pieces import next_count, read_in_pieces, size_of
from fairlead.store.records import TRACEBACK, read_facts, read_record
from fairlead.store.session import Session

MOST_PER_PAGE = 1_000
PAGE_BYTES = 1024 * 1024  # of the records of a page, which ends early; the last one may exceed it
FIRST_RECORDS = 4  # read together, as long as nothing is known of their size
ROUNDS = 20  # looks into the keyspace for one page
KEYS_PER_ROUND = 500
CURSOR = re.compile(r"([0-9]{1,20})(?:\.([0-9a-f-]{36}))?")
FIELDS = ("state", "priority", "type", "user_id", "tenant")
CHUNK = msgspec.json.Decoder(tuple[int, int, msgspec.Raw, int, int])


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a task must be like; None: anything."""

    status: str | None = None
    priority: str | None = None
    task_type: str | None = None
    user_id: str | None = None
    tenant: str | None = None

    def fields(self) -> tuple[str | None, ...]:
        """In the order of FIELDS; raises InvalidInput."""
        if self.status is not None and self.status not in list(State):
            raise InvalidInput("status", f"{self.status!r} is not one of {', '.join(State)}")
        if self.task_type is not None:
            check_name("task_type", self.task_type)
        check_short("user_id", self.user_id)
        check_short("tenant", self.tenant)
        priority = None if self.priority is None else str(int(priority_named(self.priority)))
        return (self.status, priority, self.task_type, self.user_id, self.tenant)


@dataclass(frozen=True, slots=True)
class TaskSlice:
    """The tasks that exist among the first `looked` ids; all their records together have `size` bytes."""

    tasks: list[Task]
    looked: int
    size: int
    more: bool  # ids were left


class Queries(Session):
    async def get(self, task_id: str) -> Task:
        self.connection.membership.check()
        key = self.connection.keys.key("task", check_task_id(task_id))
        (record,) = await self.connection.read(("HGETALL", key))
        if b"state" not in record:
            raise UnknownTask()
        return Task.from_record(task_id, read_record(record))

    async def list_tasks(
        self,
        *,
        status: str | None = None,
        priority: str | None = None,
        task_type: str | None = None,
        user_id: str | None = None,
        tenant: str | None = None,
        limit: int = 50,
        cursor: str = "",
        content: Content = msgspec.json.decode,
    ) -> TaskPage:
        """A page of matching tasks, up to 1 MiB, in no order; continue with its `next_cursor`.

        A task that comes or goes while pages are read may be missing, or be on two of them.
        """
        self.connection.membership.check()
        wanted = Wanted(status, priority, task_type, user_id, tenant).fields()
        check_whole("limit", limit, MOST_PER_PAGE, least=1)
        place, last = _read_cursor(cursor)
        tasks: list[Task] = []
        room = PAGE_BYTES
        for _ in range(ROUNDS):
            following, ids = await self._look(place, wanted)
            found = [task_id for task_id in ids if task_id > last]
            some = await self._read_tasks(found, limit - len(tasks), room, content)
            # the status may have changed between the look at a few fields and the reading of all
            tasks += [task for task in some.tasks if status in (None, task.status)]
            room -= some.size
            if some.more:  # the same place again, behind the last one that was looked at
                return TaskPage(tasks, f"{place}.{found[some.looked - 1]}")
            if following == 0:
                return TaskPage(tasks)
            place, last = following, ""
            if len(tasks) >= limit or room <= 0:
                break
        return TaskPage(tasks, str(place))

    async def dead_letters(self, count: int = 100, *, skip: int = 0, tenant: str | None = None) -> list[Task]:
        """Failed and dead-lettered tasks, of one tenant or of all, the latest first; each can be replayed."""
        self.connection.membership.check()
        tasks: list[Task] = []
        while True:
            page = await self.dead_page(count, skip, tenant)
            tasks, count, skip = tasks + page.tasks, count - page.looked, skip + page.looked
            if not page.more or count <= 0:
                return tasks

    async def dead_page(
        self, count: int, skip: int, tenant: str | None, content: Content = msgspec.json.decode
    ) -> TaskSlice:
        """Up to `count` of the dead letters, fewer if they are larger than a page."""
        check_short("tenant", tenant)
        keys = self.connection.keys
        key = keys.key("dead") if tenant is None else keys.key("deadof", tenant)
        (members,) = await self.connection.read(("ZREVRANGE", key, skip, skip + count))
        ids = [text(member) for member in members]
        return await self._read_tasks(ids, count, PAGE_BYTES, content)

    async def outputs(self, task_id: str, after: int = 0, *, after_event: int = 0) -> list[Output]:
        """The chunks of output that are kept, the latest 1,000, after this seq, or this seq of an event."""
        outputs: list[Output] = []
        more = True
        while more:
            some, more = await self.output_page(task_id, after, after_event=after_event)
            outputs += some
            after = outputs[-1].seq if outputs else after
        return outputs

    async def output_page(
        self,
        task_id: str,
        after: int = 0,
        *,
        after_event: int = 0,
        most: int = MOST_CHUNKS,
        content: Callable[[msgspec.Raw], Any] = msgspec.json.decode,
    ) -> tuple[list[Output], bool]:
        """As many as fit into 1 MiB, and whether there are more; `content` reads a chunk."""
        check_whole("after", after, MOST_UNITS)
        check_whole("after_event", after_event, MOST_UNITS)
        answer = await self.run("outputs", check_task_id(task_id), after, after_event, most)
        rows = [CHUNK.decode(chunk) for chunk in answer["chunks"]]
        outputs = [Output(seq, fence, content(chunk), *rest) for seq, fence, chunk, *rest in rows]
        return outputs, answer["more"]

    async def task_types(self) -> dict[str, int | None]:
        """The task types that are declared or paused, by name, with the ms at which each was paused."""
        self.connection.membership.check()
        key = self.connection.keys.key
        declared, paused = await self.connection.read(("HKEYS", key("types")), ("HGETALL", key("paused")))
        types: dict[str, int | None] = {text(field).partition(":")[2]: None for field in declared}
        types |= {text(name): int(since) for name, since in paused.items()}
        return dict(sorted(types.items()))

    async def _look(self, place: int, wanted: tuple[str | None, ...]) -> tuple[int, list[str]]:
        """One look from a place of the keyspace on: the next place, and the ids of the tasks that match."""
        prefix = self.connection.keys.key("task", "")
        ((following, keys),) = await self.connection.read(
            ("SCAN", place, "MATCH", f"{prefix}:*", "COUNT", KEYS_PER_ROUND)
        )
        rows = await read_in_pieces(self.connection, [("HMGET", key, "facts", *FIELDS) for key in keys])
        fitting = [key for key, row in zip(keys, rows, strict=True) if row[1] and _fits(*row, wanted=wanted)]
        return int(following), sorted({text(key).removeprefix(f"{prefix}:") for key in fitting})

    async def _read_tasks(self, ids: Sequence[str], most: int, room: int, content: Content) -> TaskSlice:
        """At most `most`, as many as there is room for, and at least one: a page must make progress."""
        tasks: list[Task] = []
        looked = size = 0
        count = FIRST_RECORDS
        while looked < min(most, len(ids)) and (size < room or not looked):
            piece = ids[looked : min(most, looked + count)]
            commands = [("HGETALL", self.connection.keys.key("task", task_id)) for task_id in piece]
            records = await self.connection.read_piece(*commands)
            sizes = list(map(size_of, records))
            count = next_count(len(piece), sum(sizes))
            for task_id, record, record_size in zip(piece, records, sizes, strict=True):
                if size >= room and looked:
                    break
                looked, size = looked + 1, size + record_size
                if b"state" in record:
                    tasks.append(Task.from_record(task_id, read_record(record, without=TRACEBACK), content))
                    await asyncio.sleep(0)  # one may take as long to read as others may be made to wait
        return TaskSlice(tasks, looked, size, more=looked < len(ids))


def _fits(packed: bytes | None, *stored: bytes | None, wanted: tuple[str | None, ...]) -> bool:
    facts = read_facts(packed)
    plain = {name: text(value) for name, value in zip(FIELDS, stored, strict=True) if value is not None}
    found = (str((facts | plain).get(name, "")) for name in FIELDS)
    return all(wish is None or wish == value for wish, value in zip(wanted, found, strict=True))


def _read_cursor(cursor: str) -> tuple[int, str]:
    match = CURSOR.fullmatch(cursor or "0")
    if not match or int(match[1]) >= 1 << 64:
        raise InvalidInput("cursor", "not returned by a previous page; omit it to start over")
    return int(match[1]), match[2] or ""
