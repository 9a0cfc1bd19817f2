"""`fairlead task`: list, show, explain, watch and cancel tasks."""

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from msgspec import to_builtins

from fairlead.app.handle import result_of
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import print_answer, print_facts, print_json, print_list, printable, say
from fairlead.cli.task_updates import follow_task
from fairlead.model.states import State
from fairlead.model.task import Task, TaskPage
from fairlead.settings import PriorityName
from fairlead.shapes.task import ExplainAnswer, TaskAnswer, TasksAnswer

app = App(name="task", help="List, show, explain, watch and cancel tasks.")

StateName = Literal["delayed", "queued", "executing", "completed", "failed", "cancelled", "dead_letter"]
COLUMNS = {
    "task": "task_id",
    "type": "task_type",
    "status": "status",
    "priority": "effective_priority",
    "user": "user_id",
    "created": "created_at",
    "worker": "assigned_worker_id",
}

TaskId = Annotated[str, Parameter(help="The id that submit printed.")]


@app.command(name="list")
async def list_tasks(
    *,
    status: Annotated[StateName | None, Parameter(help="Only tasks in this state.")] = None,
    priority: Annotated[
        PriorityName | None, Parameter(help="Only tasks submitted with this priority.")
    ] = None,
    task_type: Annotated[str | None, Parameter(help="Only tasks of this type.")] = None,
    user_id: Annotated[str | None, Parameter(help="Only tasks of this user.")] = None,
    limit: Annotated[int, Parameter(help="Maximum number of tasks.")] = 50,
    cursor: Annotated[str, Parameter(help="Continue where the previous list ended.")] = "",
    options: Options = DEFAULTS,
) -> None:
    """List tasks that wait, run or ended recently."""
    async with open_backend(options) as backend:
        matching = partial(
            backend.list_tasks, status=status, priority=priority, task_type=task_type, user_id=user_id
        )
        tasks, cursor = await _listed(matching, limit, cursor)
    answer = TasksAnswer(tasks=[*map(TaskAnswer.from_value, tasks)], next_cursor=cursor or None)
    print_list(options.output, answer, "tasks", COLUMNS)
    if cursor and options.output == "table":
        say(f"There may be more: --cursor {cursor}")


async def _listed(
    list_page: Callable[..., Awaitable[TaskPage]], limit: int, cursor: str
) -> tuple[list[Task], str]:
    """Newest first. A page of the store may be empty and not the last."""
    tasks: list[Task] = []
    while True:
        page = await list_page(limit=limit - len(tasks), cursor=cursor)
        tasks, cursor = [*tasks, *page.tasks], page.next_cursor
        if not cursor or len(tasks) >= limit:
            return sorted(tasks, key=lambda task: task.created_at, reverse=True), cursor


@app.command
async def show(task_id: TaskId, /, *, options: Options = DEFAULTS) -> None:
    """Show everything that is known about a task."""
    async with open_backend(options) as backend:
        task = await backend.get(task_id)
        waits = await backend.explain(task_id) if task.status is State.QUEUED else None
    answer = TaskAnswer.from_value(task, queue_position=waits.queue_position if waits else None)
    if options.output == "json":
        print_json(answer)
        return
    facts = to_builtins(answer)
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
    print_facts(_facts(facts))


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


def _facts(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty."""
    return {name: value for name, value in answer.items() if value not in (None, "", [], {}, False)}
