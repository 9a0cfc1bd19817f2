"""Coming back: the live state of a namespace, rebuilt from what is recorded of it."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec

from fairlead.errors import RestoreRefused
from fairlead.history.definitions import definitions_of
from fairlead.history.generations import Generation, generations_of
from fairlead.history.numbers import event_id, made_of, unpadded
from fairlead.history.opening import History
from fairlead.history.paging import (
    AT_ONCE,
    in_chunks,
    in_order,
    of_ids,
    place_since,
    rows_by_place,
)
from fairlead.history.rows import JobRow, TaskRow, fields_of, fields_of_job, unpack
from fairlead.model.job import ENDED, JobStatus
from fairlead.model.states import REPLAYABLE, TERMINAL, WAITING, State
from fairlead.store.membership import Found, Standing
from fairlead.store.restoring import Known, Restoring, look, tags_of, texts, used_keys
from fairlead.store.store import Store

T = TypeVar("T", bound=NamedTuple)

LOST: frozenset[Standing] = frozenset({"gone", "rolled_back", "other"})
LIVE = (*WAITING, State.EXECUTING)
OPEN_JOBS = tuple(status for status in JobStatus if status not in ENDED)
LATEST = 200  # tasks and events from which it is read how far the queue had come
AUDITED = 10_000  # entries that the store keeps
MOST_MISSING = 1_000  # that are named

LATEST_FENCE = (
    "SELECT COALESCE(MAX(fence), 0) FROM "
    f"(SELECT fence FROM events WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT {LATEST}) AS latest"
)
LATEST_RECORDS = (
    f"SELECT record FROM tasks WHERE namespace = ? AND status = ? ORDER BY place DESC LIMIT {LATEST}"
)
GREATEST = "SELECT MAX(place) FROM {table} WHERE namespace = ?"
LATER_EVENTS = "SELECT id, task_id FROM events WHERE id > ? AND id < ? ORDER BY id LIMIT 1000"
TASKS, JOBS = (
    f"SELECT {', '.join(row._fields)} FROM {table} WHERE id IN ({{marks}}) AND namespace = ? ORDER BY place"
    for table, row in (("tasks", TaskRow), ("jobs", JobRow))
)
MISSING = (
    "SELECT DISTINCT task_id FROM events WHERE id >= ? AND namespace = ? AND act = 'submit' AND NOT EXISTS "
    f"(SELECT 1 FROM tasks WHERE tasks.id = events.task_id AND tasks.namespace = events.namespace) "
    f"LIMIT {MOST_MISSING}"
)
COUNT = (
    "SELECT status, COUNT(*) FROM {table} WHERE namespace = ? AND status = ? AND event >= ? GROUP BY status"
)
OF_STEPS = "SELECT id, status, record FROM jobs WHERE id IN ({marks}) AND namespace = ?"
COMPLETED_STEPS = (
    "SELECT job_id, step, task_type, result, started_at, completed_at FROM tasks "
    "WHERE job_id IN ({marks}) AND status = 'completed' AND namespace = ?"
)
LATEST_AUDIT = (
    f"SELECT entry, seq, content, hash FROM audit WHERE namespace = ? ORDER BY entry DESC LIMIT {AUDITED}"
)


@dataclass(slots=True)
class Restored:
    """What a restore has done, or would do."""

    tasks: Counter[str] = field(default_factory=Counter)  # by the state that was recorded
    jobs: Counter[str] = field(default_factory=Counter)
    kept: int = 0  # that the server still had
    steps_again: int = 0  # whose end was not recorded
    unknown_limits: list[str] = field(default_factory=list)  # they give nothing until they are set
    missing: list[str] = field(default_factory=list)  # tasks with events, but without a record
    opens_in: float = 0  # seconds


class Restore:
    """Of one namespace, which is closed meanwhile. It may be interrupted at any point and run again."""

    def __init__(self, store: Store, history: History) -> None:
        self._store, self._history = store, history
        self._acts = Restoring(store)
        self._least = 0  # the first event of the lives that it continues
        self.done = Restored()

    async def look(self) -> tuple[Standing, Found, Generation]:
        """How the data stands to the latest recorded life of the namespace."""
        lives = await _continued(self._history)
        if not lives:
            raise RestoreRefused("The history has nothing of this namespace: check its URL and --namespace.")
        self._least = event_id(lives[-1].id, 0)
        standing, found = await look(self._store, Known(lives[0].epoch, lives[0].beat, 0, 0, 0))
        return standing, found, lives[0]

    async def is_known(self) -> bool:
        """Whether the history has anything of this namespace."""
        return bool(await generations_of(self._history, most=1))

    async def is_needed(self) -> bool:
        standing, _, _ = await self.look()
        return standing in LOST

    async def plan(self) -> Restored:
        """What there is to restore; nothing is changed."""
        await self.look()
        for table, statuses, counts in (
            ("tasks", (*LIVE, *REPLAYABLE), self.done.tasks),
            ("jobs", (*OPEN_JOBS, JobStatus.FAILED), self.done.jobs),
        ):
            for status in statuses:
                values = await self._history.number(), status, self._least
                rows = await self._history.database.read(COUNT.format(table=table), *values)
                counts.update({state: count for state, count in rows})
        self.done.missing = await self._missing()
        return self.done

    async def run(self, hold_ms: int) -> Restored:
        """`hold_ms`: for how long after the loss was noticed handlers from before may run."""
        standing, found, life = await self.look()
        if standing not in LOST:
            raise RestoreRefused("Nothing is lost: the store is as new as the history.")
        await self._acts.begin(await self._known(life), standing, found)
        await self._acts.define(await definitions_of(self._history))
        await self._acts.each("audit", await self._audit())
        if self._acts.reason == "gone" or standing == "other":
            await self._restore_all()
        else:
            await self._restore_later(life)
        await self._settle()
        await self._remember_keys()
        self.done.missing = await self._missing()
        self.done.opens_in = await self._acts.end(hold_ms)
        return self.done

    async def _known(self, life: Generation) -> Known:
        first, last = event_id(life.id, 0), event_id(life.id + 1, 0) - 1
        ((fence,),) = await self._history.database.read(LATEST_FENCE, first, last)
        started: list[Any] = []
        for status in (State.EXECUTING, State.COMPLETED):
            started += await self._history.database.read(LATEST_RECORDS, life.namespace, status)
        tags = tags_of(unpack(record) for (record,) in started)
        made = await greatest_number(self._history)
        return Known(life.epoch, life.beat, life.position, fence, made, tags)

    async def _audit(self) -> list[dict[str, Any]]:
        rows = await self._history.database.read(LATEST_AUDIT, await self._history.number())
        names = ("id", "seq", "entry", "hash")
        return [dict(zip(names, (unpadded(entry), *others), strict=True)) for entry, *others in rows[::-1]]

    async def _restore_all(self) -> None:
        """What waits or runs, and what can be replayed or resumed."""
        jobs = self._of("jobs", JobRow, (*OPEN_JOBS, JobStatus.FAILED))
        async for some in in_chunks(jobs):
            await self._restore_jobs([row for row in some if self._is_kept(row.status, row.completed_at)])
        tasks = self._of("tasks", TaskRow, (*LIVE, *REPLAYABLE))
        async for chunk in in_chunks(tasks):
            await self._restore_tasks([row for row in chunk if self._is_kept(row.status, row.completed_at)])

    async def _restore_later(self, life: Generation) -> None:
        """What has changed after the last event that the server has."""
        last, end = event_id(life.id, self._acts.after), event_id(life.id + 1, 0)
        while events := await self._history.database.read(LATER_EVENTS, last, end):
            last = events[-1][0]
            ids = [*dict.fromkeys(task for _, task in events)]
            for first in range(0, len(ids), AT_ONCE):
                rows = await of_ids(self._history, TASKS, ids[first : first + AT_ONCE])
                tasks = [row for row in (TaskRow(*one) for one in rows) if row.event >= self._least]
                jobs = [*{row.job_id for row in tasks if row.job_id}]
                await self._restore_jobs([JobRow(*one) for one in await of_ids(self._history, JOBS, jobs)])
                await self._restore_tasks(tasks)

    def _of(self, table: str, row: type[T], statuses: Sequence[str]) -> AsyncIterator[T]:
        return in_order(rows_by_place(self._history, table, row, status=status) for status in statuses)

    def _is_kept(self, status: str, ended: int | None) -> bool:
        """Records of the past that ended too long ago are not live again."""
        oldest = self._acts.now - self._store.settings.retention.dead_seconds * 1000
        return status not in (*REPLAYABLE, JobStatus.FAILED) or (ended or 0) > oldest

    async def _restore_jobs(self, rows: Iterable[JobRow]) -> None:
        items = [
            {"id": row.id, "fields": texts(fields_of_job(row))} for row in rows if row.event >= self._least
        ]
        self._count(self.done.jobs, await self._acts.rows("jobs", items))

    async def _restore_tasks(self, rows: Iterable[TaskRow]) -> None:
        tasks = [row for row in rows if row.event >= self._least]
        ended = await self._ended_steps(tasks)
        items = [{"id": row.id, "fields": texts(fields_of(row)), "ended": ended.get(row.id)} for row in tasks]
        self._count(self.done.tasks, await self._acts.rows("tasks", items))

    async def _ended_steps(self, tasks: Iterable[TaskRow]) -> dict[str, Any]:
        """What their jobs, which have ended, know of these steps: it may be newer than the task's record."""
        steps = {row.id: row for row in tasks if row.job_id and row.status in LIVE}
        rows = await of_ids(self._history, OF_STEPS, [*{row.job_id for row in steps.values() if row.job_id}])
        jobs = {job: unpack(record) for job, status, record in rows if status in ENDED}
        known = {
            task: jobs[row.job_id].get(b"step:%d" % row.step)
            for task, row in steps.items()
            if row.job_id in jobs and row.step is not None
        }
        return {task: msgspec.msgpack.decode(packed) for task, packed in known.items() if packed}

    def _count(self, counts: Counter[str], rows: Iterable[Any]) -> None:
        for row in rows:
            if row["state"] == "kept":
                self.done.kept += 1
                continue
            counts[row["state"]] += 1
            new = [name for name in row.get("unknown") or () if name not in self.done.unknown_limits]
            self.done.unknown_limits += new

    async def _settle(self) -> None:
        async for rows in in_chunks(self._of("jobs", JobRow, OPEN_JOBS)):
            jobs = {row.id: fields_of_job(row) for row in rows if row.event >= self._least}
            done: dict[str, list[Any]] = {job: [] for job in jobs}
            for job, step, task_type, result, started, ended in await of_ids(
                self._history, COMPLETED_STEPS, [*jobs]
            ):
                if b"result:%d" % step not in jobs[job]:
                    facts = {"step": step, "type": task_type, "result": result or "null", "finished": ended}
                    done[job].append(facts | {"ran": ended - (started or ended)})
            items = [{"id": job, "done": found} for job, found in done.items()]
            self.done.steps_again += await self._acts.settle(items)

    async def _remember_keys(self) -> None:
        """Idempotency keys of what has ended, for what is left of their window."""
        since = self._acts.now - round(self._store.settings.retention.idempotency_seconds * 1000)
        after = await place_since(self._history, "tasks", since)
        async for tasks in in_chunks(rows_by_place(self._history, "tasks", TaskRow, after=after)):
            ended = [row for row in tasks if row.status in TERMINAL and row.event >= self._least]
            await self._acts.each("keys", used_keys(ended, map(fields_of, ended)))
        after = await place_since(self._history, "jobs", since)
        async for jobs in in_chunks(rows_by_place(self._history, "jobs", JobRow, after=after)):
            over = [row for row in jobs if row.status in ENDED and row.event >= self._least]
            await self._acts.each("keys", used_keys(over, map(fields_of_job, over)))

    async def _missing(self) -> list[str]:
        rows = await self._history.database.read(MISSING, self._least, await self._history.number())
        return [task for (task,) in rows]


async def _continued(history: History) -> list[Generation]:
    """The latest lives, each of which continued the one before; an empty beginning ends them."""
    lives: list[Generation] = []
    for life in await generations_of(history):
        lives.append(life)
        if life.opening != "restored":
            break
    return lives


async def greatest_number(history: History) -> int:
    """Of all tasks and jobs that are listed."""
    number, found = await history.number(), [0]
    for table in ("tasks", "jobs"):
        ((place,),) = await history.database.read(GREATEST.format(table=table), number)
        found.append(made_of(place or 0))
    return max(found)
