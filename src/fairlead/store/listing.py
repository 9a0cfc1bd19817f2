"""Tasks as people look through them: one, those that can be replayed, and pages of all that are known."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.checks import check_name, check_short, check_task_id
from fairlead.errors import InvalidInput, UnknownTask
from fairlead.states import State
from fairlead.store.connection import Connection, fields_of, text
from fairlead.store.pieces import read_in_pieces
from fairlead.store.records import TRACEBACK, read_facts, read_record
from fairlead.task import Task, priority_named

MOST_PER_PAGE = 1_000
ROUNDS = 20  # looks into the keyspace for one page
KEYS_PER_ROUND = 500
CURSOR = re.compile(r"([0-9]{1,20})(?:\.([0-9a-f-]{36}))?")
FIELDS = ("state", "priority", "type", "user_id", "tenant")


@dataclass(frozen=True, slots=True)
class TaskPage:
    """`next_cursor` leads to the next page; empty: this was the last. An empty page need not be the last."""

    tasks: list[Task]
    next_cursor: str = ""


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


async def dead_page(
    connection: Connection, count: int, skip: int, tenant: str | None
) -> tuple[list[Task], bool]:
    """Of a page of `count` entries those that are still there, and whether more entries follow."""
    check_short("tenant", tenant)
    key = connection.keys.key("dead") if tenant is None else connection.keys.key("deadof", tenant)
    (members,) = await connection.read(("ZREVRANGE", key, skip, skip + count))
    ids = [text(member) for member in members]
    return await _read(connection, ids[:count]), len(ids) > count


async def list_tasks(connection: Connection, wanted: Wanted, limit: int, cursor: str) -> TaskPage:
    """In no order. What comes or goes while pages are read may be missing, or come twice."""
    fields = wanted.fields()
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_PER_PAGE:
        raise InvalidInput("limit", f"is not a whole number from 1 to {MOST_PER_PAGE}")
    place, last = _read_cursor(cursor)
    tasks: list[Task] = []
    for _ in range(ROUNDS):
        following, ids = await _look(connection, place, fields)
        found = [task_id for task_id in ids if task_id > last]
        rest = limit - len(tasks)
        tasks += [task for task in await _read(connection, found[:rest]) if _is(task, wanted)]
        if len(found) > rest:  # the same place again, behind the last one that was given
            return TaskPage(tasks, f"{place}.{found[rest - 1]}")
        if following == 0:
            return TaskPage(tasks)
        place, last = following, ""
        if len(tasks) >= limit:
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


async def _read(connection: Connection, ids: Sequence[str]) -> list[Task]:
    """Those that are there."""
    commands = [("HGETALL", connection.keys.key("task", task_id)) for task_id in ids]
    records = map(fields_of, await read_in_pieces(connection, commands))
    return [
        Task.from_record(task_id, read_record(record, without=TRACEBACK))
        for task_id, record in zip(ids, records, strict=True)
        if b"state" in record
    ]
