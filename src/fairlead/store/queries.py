"""What people look through: one task, those that can be replayed, pages of all, and the task types."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from fairlead.checks import check_name, check_short, check_task_id
from fairlead.errors import InvalidInput, UnknownTask
from fairlead.model.priority import priority_named
from fairlead.model.states import State
from fairlead.model.task import Content, Task, TaskPage
from fairlead.store.connection import Connection, fields_of, text
from fairlead.store.pieces import next_count, read_in_pieces, size_of
from fairlead.store.records import TRACEBACK, read_facts, read_record

MOST_PER_PAGE = 1_000
PAGE_BYTES = 1024 * 1024  # of the records of a page, which ends early; the last one may go over it
FIRST_RECORDS = 4  # read at once, as long as nothing is known of their size
ROUNDS = 20  # looks into the keyspace for one page
KEYS_PER_ROUND = 500
CURSOR = re.compile(r"([0-9]{1,20})(?:\.([0-9a-f-]{36}))?")
FIELDS = ("state", "priority", "type", "user_id", "tenant")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a task must be like; None: whatever it is."""

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


async def get_task(connection: Connection, task_id: str) -> Task:
    (record,) = await connection.read(("HGETALL", connection.keys.key("task", check_task_id(task_id))))
    fields = fields_of(record)
    if b"state" not in fields:
        raise UnknownTask()
    return Task.from_record(task_id, read_record(fields))


@dataclass(frozen=True, slots=True)
class DeadPage:
    """`looked` entries were looked at; some of their records may be gone."""

    tasks: list[Task]
    looked: int
    more: bool


async def dead_page(
    connection: Connection,
    count: int,
    skip: int,
    tenant: str | None,
    content: Content = msgspec.json.decode,
    room: int = PAGE_BYTES,
) -> DeadPage:
    """Up to `count` entries, fewer if they are larger than `room` bytes."""
    check_short("tenant", tenant)
    key = connection.keys.key("dead") if tenant is None else connection.keys.key("deadof", tenant)
    (members,) = await connection.read(("ZREVRANGE", key, skip, skip + count))
    ids = [text(member) for member in members]
    some = await _read(connection, ids[:count], room, content)
    return DeadPage(some.tasks, some.looked, len(ids) > some.looked)


async def dead_tasks(connection: Connection, count: int, skip: int, tenant: str | None) -> list[Task]:
    """Those entries of a page that still exist, however large they are."""
    tasks: list[Task] = []
    while True:
        page = await dead_page(connection, count, skip, tenant)
        tasks, count, skip = tasks + page.tasks, count - page.looked, skip + page.looked
        if not page.more or count <= 0:
            return tasks


async def list_tasks(
    connection: Connection, wanted: Wanted, limit: int, cursor: str, content: Content = msgspec.json.decode
) -> TaskPage:
    """In no order. What comes or goes while pages are read may be missing, or come twice."""
    fields = wanted.fields()
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_PER_PAGE:
        raise InvalidInput("limit", f"is not a whole number from 1 to {MOST_PER_PAGE}")
    place, last = _read_cursor(cursor)
    tasks: list[Task] = []
    room = PAGE_BYTES
    for _ in range(ROUNDS):
        following, ids = await _look(connection, place, fields)
        found = [task_id for task_id in ids if task_id > last]
        some = await _read(connection, found[: limit - len(tasks)], room, content)
        tasks += [task for task in some.tasks if _is(task, wanted)]
        room -= some.size
        if len(found) > some.looked:  # the same place again, behind the last one that was looked at
            return TaskPage(tasks, f"{place}.{found[some.looked - 1]}")
        if following == 0:
            return TaskPage(tasks)
        place, last = following, ""
        if len(tasks) >= limit or room <= 0:
            break
    return TaskPage(tasks, str(place))


async def _look(connection: Connection, place: int, wanted: tuple[str | None, ...]) -> tuple[int, list[str]]:
    """One look from a place of the keyspace on: the next place, and the tasks that fit, by their ids."""
    prefix = connection.keys.key("task", "")
    ((following, keys),) = await connection.read(
        ("SCAN", place, "MATCH", f"{prefix}:*", "COUNT", KEYS_PER_ROUND)
    )
    rows = await read_in_pieces(connection, [("HMGET", key, "facts", *FIELDS) for key in keys])
    fitting = [key for key, row in zip(keys, rows, strict=True) if row[1] and _fits(*row, wanted=wanted)]
    return int(following), sorted({text(key).removeprefix(f"{prefix}:") for key in fitting})


def _fits(packed: bytes | None, *stored: bytes | None, wanted: tuple[str | None, ...]) -> bool:
    facts = read_facts(packed)
    plain = {name: text(value) for name, value in zip(FIELDS, stored, strict=True) if value is not None}
    found = (str((facts | plain).get(name, "")) for name in FIELDS)
    return all(wish is None or wish == value for wish, value in zip(wanted, found, strict=True))


def _is(task: Task, wanted: Wanted) -> bool:
    """It may have changed between the look at a few fields and the reading of all."""
    return wanted.status is None or task.status == wanted.status


def _read_cursor(cursor: str) -> tuple[int, str]:
    match = CURSOR.fullmatch(cursor or "0")
    if not match or int(match[1]) >= 1 << 64:
        raise InvalidInput("cursor", "is none that a page gave: begin without one")
    return int(match[1]), match[2] or ""


@dataclass(frozen=True, slots=True)
class Some:
    """Of the first `looked` tasks those that are there; all their records have `size` bytes."""

    tasks: list[Task]
    looked: int
    size: int


async def _read(connection: Connection, ids: Sequence[str], room: int, content: Content) -> Some:
    """As many as there is room for, and at least one: a page must make progress."""
    tasks: list[Task] = []
    looked = size = 0
    count = FIRST_RECORDS
    while looked < len(ids) and (size < room or not looked):
        piece = ids[looked : looked + count]
        commands = [("HGETALL", connection.keys.key("task", task_id)) for task_id in piece]
        records = await connection.read_piece(*commands)
        sizes = list(map(size_of, records))
        count = next_count(len(piece), sum(sizes))
        for task_id, record, bytes_of_it in zip(piece, map(fields_of, records), sizes, strict=True):
            if size >= room and looked:
                break
            looked, size = looked + 1, size + bytes_of_it
            if b"state" in record:
                tasks.append(Task.from_record(task_id, read_record(record, without=TRACEBACK), content))
                await asyncio.sleep(0)  # one may take as long to read as others may be made to wait
    return Some(tasks, looked, size)


async def types_known(connection: Connection) -> dict[str, int | None]:
    """The task types that are declared or paused, by name, with the ms at which each was paused."""
    connection.membership.check()
    key = connection.keys.key
    declared, paused = await connection.read(("HKEYS", key("types")), ("HGETALL", key("paused")))
    types: dict[str, int | None] = {text(field).partition(":")[2]: None for field in declared}
    types |= {text(name): int(since) for name, since in fields_of(paused).items()}
    return dict(sorted(types.items()))
