"""What people look at: a task and its output, pages of all tasks, the task types."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fairlead.checks import MOST_UNITS, check_name, check_short, check_task_id, check_whole
from fairlead.errors import InvalidInput, NoHistory, UnknownTask
from fairlead.model.estimate import Estimate
from fairlead.model.priority import Priority, priority_named
from fairlead.model.promotion import Promotion
from fairlead.model.reports import MOST_CHUNKS, Output
from fairlead.model.states import State
from fairlead.model.task import Content, Task, TaskPage
from fairlead.model.task_history import TaskHistory
from fairlead.store.archive import page_of_all
from fairlead.store.connection import Connection, pack, text
from fairlead.store.pages import Make, Newest, Sought
from fairlead.store.recorded import history_event, unrecorded_events
from fairlead.store.records import TRACEBACK, read_record
from fairlead.store.session import Session

MOST_PROMOTIONS = 100
ESTIMATED_AT_ONCE = 100  # tasks of one act: a few ms of the server
CHUNK = msgspec.json.Decoder(tuple[int, int, msgspec.Raw, int, int])


class Queries(Session):
    async def get(self, task_id: str) -> Task:
        try:
            return await read_task(self.connection, task_id)
        except UnknownTask:
            record = await self.archive.record("task", task_id) if self.archive else None
            if record is None:
                raise
            return Task.from_record(task_id, read_record(record))

    async def history(self, task_id: str) -> TaskHistory:
        """What has happened to a task, and its runs. Events appear at once, runs when they are recorded."""
        if self.archive is None:
            raise NoHistory()
        recorded = await self.archive.task_history(check_task_id(task_id))
        known = {(event.seq, event.at) for event in recorded.events}
        rows = await unrecorded_events(self.connection, task_id)
        later = [history_event(row) for row in rows if (row.seq, row.at) not in known]
        if not recorded.events and not later:
            raise UnknownTask()
        return TaskHistory([*recorded.events, *later], recorded.attempts)

    async def estimates_of(self, *task_ids: str) -> dict[str, Estimate]:
        """What is left of the waits of those that wait, if it is known."""
        found: dict[str, Estimate] = {}
        for start in range(0, len(task_ids), ESTIMATED_AT_ONCE):
            some = [check_task_id(one) for one in task_ids[start : start + ESTIMATED_AT_ONCE]]
            rows = (await self.run("estimates_of", pack(some)))["estimates"]
            found |= {task_id: Estimate.of_ms(*row) for task_id, row in (rows or {}).items()}
        return found

    async def list_tasks(
        self,
        *,
        status: str | None = None,
        priority: str | None = None,
        task_type: str | None = None,
        user_id: str | None = None,
        search: str | None = None,
        since: int | None = None,
        until: int | None = None,
        error: str | None = None,
        needs: str | None = None,
        tenant: str | None = None,
        limit: int = 50,
        cursor: str = "",
        content: Content = msgspec.json.decode,
    ) -> TaskPage:
        """A page of matching tasks, newest first, up to 1 MiB; continue with its `next_cursor`.

        A task that exists from the first page to the last is on one of them, and on no other. `search`: the
        beginning of an id, or a part of a type or a user_id. `since`, `until`: ms, of when it was accepted.
        """
        self.connection.membership.check()
        wanted = _wanted(status, priority, task_type, user_id, tenant)
        sought = Sought(search, ("type", "user_id"), since, until, error, needs)
        sought.check()
        listed = Newest(self.connection, "task", wanted, _made(content, status), sought)
        page = await page_of_all(listed, self.archive, limit, cursor)
        return TaskPage(page.found, page.cursor, page.warnings)

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

    async def promotions(self, count: int = 10, *, tenant: str | None = None) -> list[Promotion]:
        """The waiting tasks that are promoted next."""
        check_whole("limit", count, MOST_PROMOTIONS, least=1)
        check_short("tenant", tenant)
        rows = (await self.run("promotions", tenant or "", count))["tasks"]
        return [
            Promotion(
                task_id=row["id"],
                task_type=row["type"],
                user_id=row.get("user"),
                tenant=row.get("tenant"),
                before=Priority(row["from"]),
                after=Priority(row["to"]),
                at=row["at"],
                waiting_since=row["arrival"],
            )
            for row in rows
        ]

    async def task_types(self) -> dict[str, int | None]:
        """The task types that are declared or paused, by name, with the ms at which each was paused."""
        self.connection.membership.check()
        key = self.connection.keys.key
        declared, paused = await self.connection.read(("HKEYS", key("types")), ("HGETALL", key("paused")))
        types: dict[str, int | None] = {text(field).partition(":")[2]: None for field in declared}
        types |= {text(name): int(since) for name, since in paused.items()}
        return dict(sorted(types.items()))


async def read_task(connection: Connection, task_id: str) -> Task:
    connection.membership.check()
    (record,) = await connection.read(("HGETALL", connection.keys.key("task", check_task_id(task_id))))
    if b"state" not in record:
        raise UnknownTask()
    return Task.from_record(task_id, read_record(record))


def _wanted(
    status: str | None, priority: str | None, task_type: str | None, user_id: str | None, tenant: str | None
) -> dict[str, str | None]:
    """The fields of a record that a task must have; None: anything."""
    if status is not None and status not in list(State):
        raise InvalidInput("status", f"{status!r} is not one of {', '.join(State)}")
    if task_type is not None:
        check_name("task_type", task_type)
    check_short("user_id", user_id)
    check_short("tenant", tenant)
    rank = None if priority is None else str(int(priority_named(priority)))
    return {"state": status, "priority": rank, "type": task_type, "user_id": user_id, "tenant": tenant}


def _made(content: Content, status: str | None = None) -> Make[Task]:
    """A task from its record, unless it is in another state by now."""

    def make(task_id: str, record: Mapping[bytes, bytes]) -> Task | None:
        if b"state" not in record or status not in (None, text(record[b"state"])):
            return None
        return Task.from_record(task_id, read_record(record, without=TRACEBACK), content)

    return make
