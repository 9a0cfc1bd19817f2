"""`fairlead task`: list, show, explain, watch and cancel tasks."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from typing import Annotated, Any, TextIO

from cyclopts import App, Parameter
from msgspec import to_builtins

from fairlead.app.handle import result_of
from fairlead.backend import Backend
from fairlead.cli.listing import ALL, LIST, ListOptions, Past, View, gathered, show
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import Output, print_answer, print_json, printable, warn
from fairlead.cli.screen import LOOK_AGAIN, Update, follow, output_words
from fairlead.cli.table import Columns, print_facts, print_table, print_tables, table_of
from fairlead.model.estimate import Estimate, has_moved
from fairlead.model.event import Event
from fairlead.model.explanation import Blocker, Holder
from fairlead.model.reports import Output as Chunk
from fairlead.model.states import TERMINAL, WAITING, State
from fairlead.model.task import Task, TaskProgress
from fairlead.settings import PriorityName
from fairlead.shapes.base import StatusName
from fairlead.shapes.estimate import shown_estimate
from fairlead.shapes.live import EventLine
from fairlead.shapes.task import ExplainAnswer, OutputAnswer, TaskAnswer, TasksAnswer
from fairlead.shapes.task_history import HistoryAnswer
from fairlead.times import time_text

app = App(name="task", help="List, show, explain, watch and cancel tasks, and show their history.")

COLUMNS = {
    "task": "task_id",
    "type": "task_type",
    "status": "status",
    "priority": "effective_priority",
    "user": "user_id",
    "created": "created_at",
    "worker": "assigned_worker_id",
}
EVENTS: Columns = {
    "event": "act",
    "at": "at",
    "from": "from",
    "to": "to",
    "worker": "worker_id",
    "fence": "fence",
}
ATTEMPTS: Columns = {
    "run": "fence",
    "worker": "worker_id",
    "started": "started_at",
    "ended": "ended_at",
    "by": "ended_by",
    "code": "error_code",
    "error": "error",
}
LEAST_USED_OF_RUNS = ("worker", "run", "by")
TIER = {"tier": "tier"}  # where there are tiers
LEAST_USED = ("worker", "user", "priority", "created", "tier", "type")

HOLDERS = ("limit", "holder", "task or lease", "units", "since", "expected end", "latest end")
LEAST_USED_OF_HOLDERS = ("latest end", "since", "units")

TaskId = Annotated[str, Parameter(help="The id that submit printed.")]


@app.command(name="list")
async def list_tasks(
    *,
    status: Annotated[StatusName | None, Parameter(help="Only tasks in this state.")] = None,
    priority: Annotated[
        PriorityName | None, Parameter(help="Only tasks submitted with this priority.")
    ] = None,
    task_type: Annotated[str | None, Parameter(help="Only tasks of this type.")] = None,
    user_id: Annotated[str | None, Parameter(help="Only tasks of this user.")] = None,
    past: Past = ALL,
    limit: Annotated[int, Parameter(help="Maximum number of tasks.")] = 50,
    cursor: Annotated[str, Parameter(help="Continue where the previous list ended.")] = "",
    options: ListOptions = LIST,
) -> None:
    """List tasks, newest first: those that wait, run or have ended."""
    wanted = past.wanted
    async with open_backend(options) as backend:

        async def read_page(limit: int, cursor: str) -> tuple[list[Task], str]:
            page = await backend.list_tasks(
                status=status,
                priority=priority,
                task_type=task_type,
                user_id=user_id,
                **wanted,
                limit=limit,
                cursor=cursor,
            )
            warn(page.warnings)
            return page.tasks, page.next_cursor

        async def read() -> View:
            tasks, following = await gathered(read_page, limit, cursor)
            answers = [TaskAnswer.from_value(task) for task in tasks]
            more = f"There may be more: --cursor {following}" if following else ""
            answer = TasksAnswer(tasks=answers, next_cursor=following or None)
            columns = COLUMNS | TIER if any(task.tier for task in tasks) else COLUMNS
            return View(answer, [table_of(answers, columns, LEAST_USED)], more)

        await show(options, read)


@app.command(name="history")
async def show_history(task_id: TaskId, /, *, options: Options = DEFAULTS) -> None:
    """Show what has happened to a task: its events, and its runs with their errors."""
    async with open_backend(options) as backend:
        answer = HistoryAnswer.from_value(await backend.history(task_id))
    if options.output == "json":
        print_json(answer)
        return
    print_tables([table_of(answer.events, EVENTS), table_of(answer.attempts, ATTEMPTS, LEAST_USED_OF_RUNS)])
    for attempt in answer.attempts:
        for line in (attempt.traceback or "").splitlines():
            print(printable(line))


@app.command(name="show")
async def show_task(task_id: TaskId, /, *, options: Options = DEFAULTS) -> None:
    """Show everything that is known about a task."""
    async with open_backend(options) as backend:
        task = await backend.get(task_id)
        waits = await backend.explain(task_id) if task.status in WAITING else None
    answer = TaskAnswer.from_value(
        task,
        queue_position=waits.queue_position if waits else None,
        estimate=shown_estimate(waits.estimate if waits else None),
    )
    if options.output == "json":
        print_json(answer)
        return
    facts = to_builtins(answer)
    facts["tiers"] = ", then ".join(
        f"{one['tier']} at {one['at']}: {one['reason']}" for one in facts["tiers"]
    )
    facts["estimate"] = waits.estimate.words if waits and waits.estimate else None
    facts["estimate_given"] = task.estimate_given.words if task.estimate_given else None
    traceback = facts["error"].pop("traceback") if facts["error"] else None
    print_facts(_facts(facts) | ({"why": waits.sentence} if waits else {}))
    for line in (traceback or "").splitlines():
        print(printable(line))


@app.command
async def explain(task_id: TaskId, /, *, options: Options = DEFAULTS) -> None:
    """Explain why a task waits and what must happen before it starts."""
    async with open_backend(options) as backend:
        explanation = await backend.explain(task_id)
    answer = ExplainAnswer.from_value(explanation)
    if options.output == "json":
        print_json(answer)
        return
    facts = to_builtins(answer)
    print(facts.pop("sentence"))
    del facts["at"], facts["chosen_because"]  # which the sentence says
    facts["estimate"] = explanation.estimate.words if explanation.estimate else None
    facts["blocked_by"] = ", ".join(map(_blocker_words, explanation.blocked_by))
    print_facts(_facts(facts))
    if holders := [_holder_row(one, held) for one in explanation.blocked_by for held in one.holders]:
        print()
        print_table(HOLDERS, holders, LEAST_USED_OF_HOLDERS)


def _blocker_words(it: Blocker) -> str:
    return f"{it.limit} (needs {it.needs}, {it.used} of {it.of} used)"


def _holder_row(blocker: Blocker, it: Holder) -> tuple[object, ...]:
    what, times = it.task_id or it.lease_id, (it.since, it.expected_end, it.ends_at)
    return blocker.limit, it.worker, what, it.units, *map(time_text, times)


def _facts(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty."""
    return {name: value for name, value in answer.items() if value not in (None, "", [], {}, False)}


@app.command
async def cancel(task_id: TaskId, /, *, options: Options = DEFAULTS) -> None:
    """Cancel a task. A running one is cancelled at once, and its worker is asked to stop it."""
    async with open_backend(options) as backend:
        worker = await backend.cancel(task_id)
    answer = {"task_id": task_id, "status": State.CANCELLED, "worker_id": worker}
    stopping = f"; worker {worker} is asked to stop" if worker else ""
    print_answer(options.output, answer, f"{task_id} cancelled{stopping}")


@app.command
async def watch(task_id: TaskId, /, *, options: Options = DEFAULTS) -> None:
    """Show the progress of a task until it has ended. Exit code 1 when it failed or was cancelled."""
    async with open_backend(options) as backend:
        task = await follow_task(backend, task_id, sys.stdout, options.output)
    result = result_of(task)
    if options.output == "table":
        print_json(result)


async def follow_task(backend: Backend, task_id: str, stream: TextIO, output: Output) -> Task:
    """Shows what happens to the task until it has ended; the task as it ended."""
    # fails at once if there is no such task, or no server
    watch = TaskWatch(backend, await backend.get(task_id))
    await follow("task", task_id, watch.updates(), stream, output)
    return watch.task


class TaskWatch:
    """The updates of a task, and the task as it was when it was last read."""

    def __init__(self, backend: Backend, task: Task) -> None:
        self.task = task
        self._backend = backend
        self._shown: object = None
        self._estimate: Estimate | None = None  # that was shown last
        self._last_output = 0

    async def updates(self) -> AsyncGenerator[Update]:
        async with self._backend.live.watch(self.task.task_id) as events:
            while self._shown is None or self.task.status not in TERMINAL:
                event = None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN):
                        event = await anext(events)
                if event is None or event.after in TERMINAL:
                    for update in await self._read():
                        yield update
                elif event.act != "output":
                    self._shown = (event.after, event.fence, "")
                    yield _event_update(event)
                elif event.detail["seq"] > self._last_output:  # else it was read with the state
                    self._last_output = event.detail["seq"]
                    yield _output_update(Chunk(self._last_output, event.fence, event.detail["chunk"]))

    async def _read(self) -> list[Update]:
        """Its state, if it is another one, and its new output. The end of a task comes last."""
        self.task = task = await self._backend.get(self.task.task_id)
        (why, estimate), before = await self._why(), self._shown
        self._shown = (task.status, task.fence, why)
        moved = estimate is not None and has_moved(self._estimate, estimate)
        state = [_state_update(task, why, estimate)] if self._shown != before or moved else []
        if state:
            self._estimate = estimate
        outputs = await self._backend.outputs(task.task_id, after=self._last_output)
        self._last_output = outputs[-1].seq if outputs else self._last_output
        new = [_output_update(output) for output in outputs]
        return new + state if task.status in TERMINAL else state + new

    async def _why(self) -> tuple[str, Estimate | None]:
        """Why it does not run yet, and for how long."""
        if self.task.status not in WAITING:
            return "", None
        explanation = await self._backend.explain(self.task.task_id)
        if self.task.status is State.DELAYED:
            return f"Until {time_text(self.task.run_at)}.", explanation.estimate
        return explanation.sentence, explanation.estimate


def _state_update(task: Task, why: str, estimate: Estimate | None) -> Update:
    progress = task.progress if task.status is State.EXECUTING else None
    answer = {"task": TaskAnswer.from_value(task, estimate=shown_estimate(estimate)), "why": why}
    starts = f"It starts in {estimate.words}." if estimate else ""
    words = " ".join(filter(None, (why, starts, _tier_words(task))))
    return _bar_update(answer, task.status, progress, words, starts=task.status is State.EXECUTING)


def _tier_words(task: Task) -> str:
    if task.status is State.EXECUTING and task.tier:
        return f"(tier {task.tier}, until {time_text(task.deadline)})"
    return "(truncated at the deadline of its tier)" if task.truncated else ""


def _event_update(event: Event) -> Update:
    answer = {"event": EventLine.from_value(event)}
    if event.act == "progress":
        return _bar_update(answer, event.after, TaskProgress(**event.detail))
    code = event.detail.get("code")
    if event.act == "shorten":
        code = f"{event.detail['tier']}, until {time_text(event.detail['deadline'])}"
    words = f"({event.act}: {code})" if code else f"({event.act})"
    return _bar_update(answer, event.after, None, words, starts=event.act == "claim")


def _bar_update(
    answer: object, state: State, progress: TaskProgress | None, words: str = "", *, starts: bool = False
) -> Update:
    fraction = progress.fraction if progress else None
    percent = "" if fraction is None else f"{fraction:.0%}"
    line = " ".join(filter(None, (state, percent, progress.message if progress else "", words)))
    waits = None if state is State.EXECUTING else 0.0
    return Update(
        answer=answer,
        line=line,
        bar=0,
        words=line,
        starts=starts,
        fraction=waits if fraction is None else fraction,
    )


def _output_update(output: Chunk) -> Update:
    return Update(answer={"output": OutputAnswer.from_value(output)}, line=output_words(output.chunk))
