"""`fairlead dlq`: failed and dead-lettered tasks, to be run again or forgotten."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import App, Parameter

from fairlead.backend import Backend
from fairlead.cli import DONE, FAILED
from fairlead.cli.audit import note
from fairlead.cli.listing import LIST, ListOptions, show_all
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import agreed, each, print_json, say
from fairlead.cli.table import Columns
from fairlead.errors import FairleadError, InvalidInput, NotPurgeable, NotReplayable, StepOfJob, UnknownTask
from fairlead.model.task import Task
from fairlead.shapes.task import TaskAnswer

app = App(name="dlq", help="List, replay and purge failed and dead-lettered tasks.")

COLUMNS: Columns = {
    "task": "task_id",
    "type": "task_type",
    "status": "status",
    "ended": "completed_at",
    "code": lambda task: task["error"] and task["error"]["code"],
    "message": lambda task: task["error"] and task["error"]["message"],
}
LEAST_USED = ("status", "message", "type", "ended")
PAGE = 500
MOST_NAMED = 1_000  # in the audit
DONE_WORDS = {"replay": "replayed", "purge": "purged"}

TaskIds = Annotated[str, Parameter(help="Ids, as `dlq list` shows them.")]
OfType = Annotated[str | None, Parameter(help="Only tasks of this type.")]


@app.command(name="list")
async def list_dead(
    *,
    task_type: OfType = None,
    limit: Annotated[int, Parameter(help="Maximum number of tasks, newest first.")] = 50,
    options: ListOptions = LIST,
) -> None:
    """List tasks that failed for good or used up their retries."""
    if limit < 1:
        raise InvalidInput("--limit", "is not a number from 1")

    async def read(backend: Backend) -> list[Task]:
        return [task async for task in _dead(backend, task_type, limit)]

    await show_all(options, "tasks", read, TaskAnswer.from_value, COLUMNS, LEAST_USED)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which tasks, when they are not named one by one."""

    every: Annotated[bool, Parameter(name="--all", help="All, or all of --task-type.", negative=())] = False
    task_type: OfType = None

    def words(self, task_ids: Sequence[str]) -> str:
        if bool(task_ids) == self.every or (self.task_type and not self.every):
            raise InvalidInput("task_id", "give ids of tasks, or --all (with --task-type: all of that type)")
        if not self.every:
            return _tasks(len(task_ids))
        return "all" + (f" {self.task_type}" if self.task_type else "") + " tasks that failed"

    async def ids(self, backend: Backend, task_ids: Sequence[str]) -> list[str]:
        if not self.every:
            return list(task_ids)
        # all ids before the first act: one that fails again meanwhile is not to be replayed again
        return [task.task_id async for task in _dead(backend, self.task_type)]


NAMED = Choice()


@app.command
async def replay(
    *task_ids: TaskIds,
    choice: Choice = NAMED,
    options: Options = DEFAULTS,
) -> int:
    """Queue failed and dead-lettered tasks again, with all their retries; the jobs of steps are resumed."""
    choice.words(task_ids)
    return await _do("replay", task_ids, choice, options)


@app.command
def purge(
    *task_ids: TaskIds,
    choice: Choice = NAMED,
    yes: Annotated[bool, Parameter(help="Do not ask.", negative=())] = False,
    options: Options = DEFAULTS,
) -> int:
    """Delete failed and dead-lettered tasks for good. On a terminal it asks first."""
    words = choice.words(task_ids)
    if not yes and not agreed(f"Forget {words} for good?"):
        say("Nothing was purged.")
        return FAILED
    return asyncio.run(_do("purge", task_ids, choice, options))


async def _do(
    act: Literal["replay", "purge"], task_ids: Sequence[str], choice: Choice, options: Options
) -> int:
    done: dict[str, None] = {}  # in this order
    refused: dict[str, FairleadError] = {}
    async with open_backend(options) as backend:
        for task_id in each(await choice.ids(backend, task_ids), act):
            if task_id in done:  # another step of its job was replayed
                continue
            try:
                if act == "replay":
                    done |= dict.fromkeys(await backend.replay(task_id))
                else:
                    await backend.purge(task_id)
                    done[task_id] = None
            except (UnknownTask, NotReplayable, NotPurgeable, StepOfJob) as problem:
                if not choice.every:  # of all: somebody else was faster, or it is up to its job
                    refused[task_id] = problem
            except InvalidInput as problem:  # a limit that it needs is gone
                refused[task_id] = problem
        if done:
            after = {DONE_WORDS[act]: [*done][:MOST_NAMED], "count": len(done)}
            await note(backend, act, choice.words(task_ids), None, after)
    if options.output == "json":
        why = {task_id: {"code": one.code, "message": one.message} for task_id, one in refused.items()}
        print_json({DONE_WORDS[act]: [*done], "refused": why})
    else:
        print(f"{_tasks(len(done))} {DONE_WORDS[act]}")
        for task_id, one in refused.items():
            say(f"fairlead: {task_id}: {one.message}")
    return FAILED if refused else DONE


async def _dead(backend: Backend, task_type: str | None, most: float = math.inf) -> AsyncIterator[Task]:
    """Newest first. What fails meanwhile shifts the pages, so a task may be met twice: it is yielded once."""
    seen: set[str] = set()
    skip = 0
    while page := await backend.dead_letters(PAGE, skip=skip):
        for task in page:
            if len(seen) == most:
                return
            if task.task_id not in seen and task_type in (None, task.task_type):
                seen.add(task.task_id)
                yield task
        skip += PAGE


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
