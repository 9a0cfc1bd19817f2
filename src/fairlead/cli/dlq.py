"""`fairlead dlq`: failed and dead-lettered tasks, to be run again or forgotten."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from msgspec import to_builtins

from fairlead.backend import Backend
from fairlead.cli import DONE, FAILED
from fairlead.cli.audit import note
from fairlead.cli.listing import LIST, ListOptions, View, gathered, show
from fairlead.cli.moments import read_moment
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import agreed, each, print_json, printable, say
from fairlead.cli.submit import JsonObject, Repeated, given_parameters
from fairlead.cli.table import Columns, print_facts, table_of
from fairlead.errors import FairleadError, InvalidInput, NotPurgeable, NotReplayable, StepOfJob, UnknownTask
from fairlead.model.dead_letter import DeadFilter, why_dead
from fairlead.model.task import Task
from fairlead.settings.rates import parse_rate
from fairlead.shapes.dead_letter import DeadLetterAnswer
from fairlead.shapes.task import TaskAnswer, TasksAnswer

app = App(name="dlq", help="List, show, replay and purge failed and dead-lettered tasks.")

COLUMNS: Columns = {
    "task": "task_id",
    "type": "task_type",
    "status": "status",
    "ended": "completed_at",
    "code": lambda task: task["error"] and task["error"]["code"],
    "message": lambda task: task["error"] and task["error"]["message"],
}
SHOWN = (
    *("task_id", "task_type", "status", "user_id", "tenant", "job_id", "created_at", "started_at"),
    *("completed_at", "retry_count", "crash_count", "loss_count", "assigned_worker_id", "parameters"),
)
LEAST_USED = ("status", "message", "type", "ended")
PAGE = 500
MOST_NAMED = 1_000  # in the audit
DONE_WORDS = {"replay": "replayed", "purge": "purged"}

TaskIds = Annotated[str, Parameter(help="Ids, as `dlq list` shows them.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Which:
    """Which dead letters; what is not given may be anything."""

    status: Annotated[
        Literal["dead_letter", "failed"] | None, Parameter(help="Only those in this state.")
    ] = None
    task_type: Annotated[str | None, Parameter(help="Only tasks of this type.")] = None
    user_id: Annotated[str | None, Parameter(help="Only tasks of this user.")] = None
    tenant: Annotated[str | None, Parameter(help="Only tasks of this tenant.")] = None
    code: Annotated[str | None, Parameter(help="Only those that ended with this code.")] = None
    text: Annotated[str | None, Parameter(help="Only those with this text in the message.")] = None
    since: Annotated[
        str | None, Parameter(help="Only those that ended since then: 24h ago, or an RFC 3339 time.")
    ] = None
    until: Annotated[str | None, Parameter(help="Only those that ended until then.")] = None

    @property
    def wanted(self) -> DeadFilter:
        times = {name: read_moment(f"--{name}", getattr(self, name)) for name in ("since", "until")}
        return DeadFilter(**(self._given | times))

    @property
    def words(self) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self._given.items() if value)

    @property
    def _given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in DeadFilter.__struct_fields__}


ANY = Which()


@app.command(name="list")
async def list_dead(
    *,
    which: Which = ANY,
    limit: Annotated[int, Parameter(help="Maximum number of tasks, the latest first.")] = 50,
    cursor: Annotated[str, Parameter(help="Continue where the previous list ended.")] = "",
    options: ListOptions = LIST,
) -> None:
    """List tasks that failed for good or used up their retries, the latest first."""
    if limit < 1:
        raise InvalidInput("--limit", "is not a number from 1")
    wanted = which.wanted
    async with open_backend(options) as backend:

        async def read_page(count: int, cursor: str) -> tuple[list[Task], str]:
            page = await backend.dead_letters.page(min(count, PAGE), cursor, wanted)
            return page.tasks, page.next_cursor

        async def read() -> View:
            tasks, following = await gathered(read_page, limit, cursor)
            answers = [TaskAnswer.from_value(task) for task in tasks]
            more = f"There may be more: --cursor {following}" if following else ""
            answer = TasksAnswer(tasks=answers, next_cursor=following or None)
            return View(answer, [table_of(answers, COLUMNS, LEAST_USED)], more)

        await show(options, read)


@app.command(name="show")
async def show_dead(
    task_id: Annotated[str, Parameter(help="An id, as `dlq list` shows it.")],
    /,
    *,
    options: Options = DEFAULTS,
) -> None:
    """Show why a task failed for good, with its parameters and the traceback of its last run."""
    async with open_backend(options) as backend:
        task = await backend.dead_letters.get(task_id)
    if options.output == "json":
        print_json(DeadLetterAnswer.from_value(task, why=why_dead(task)))
        return
    print(why_dead(task))
    facts = to_builtins(TaskAnswer.from_value(task))
    shown = {name: facts[name] for name in SHOWN if facts[name] not in (None, {}, 0)}
    print_facts(shown | ({"message": task.error.message} if task.error else {}))
    for line in ((task.error and task.error.traceback) or "").splitlines():
        print(printable(line))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Choice(Which):
    """Which tasks, when they are not named one by one."""

    every: Annotated[bool, Parameter(name="--all", help="All, or all that fit.", negative=())] = False

    def check(self, task_ids: Sequence[str]) -> str:
        """In words."""
        if bool(task_ids) == self.every or (self.words and not self.every):
            raise InvalidInput("task_id", "give ids of tasks, or --all (with --task-type: all of that type)")
        if not self.every:
            return _tasks(len(task_ids))
        return "all tasks that failed" + (f" ({self.words})" if self.words else "")

    async def ids(self, backend: Backend, task_ids: Sequence[str]) -> list[str]:
        if not self.every:
            return list(task_ids)
        # all ids before the first act: one that fails again meanwhile is not to be replayed again
        return [task.task_id async for task in _dead(backend, self.wanted)]


NAMED = Choice()


@app.command
async def replay(
    *task_ids: TaskIds,
    choice: Choice = NAMED,
    param: Annotated[
        tuple[str, ...],
        Repeated,
        Parameter(help="name=value of a parameter to change: JSON if it reads as JSON; repeatable."),
    ] = (),
    parameters: JsonObject = None,
    rate: Annotated[str | None, Parameter(help="At most this many, as in 10/s or 60/min.")] = None,
    options: Options = DEFAULTS,
) -> int:
    """Queue failed and dead-lettered tasks again, with all their retries; the jobs of steps are resumed.

    --param changes some of their parameters, --parameters replaces all; steps have none of their own.
    """
    choice.check(task_ids)
    given, is_whole = given_parameters(parameters, param), parameters is not None

    async def replay_one(backend: Backend, task_id: str) -> list[str]:
        if not given and not is_whole:
            return await backend.replay(task_id)
        known = {} if is_whole else (await backend.get(task_id)).parameters
        return await backend.replay(task_id, {**known, **given})

    return await _do("replay", replay_one, task_ids, choice, options, _interval(rate))


@app.command
def purge(
    *task_ids: TaskIds,
    choice: Choice = NAMED,
    yes: Annotated[bool, Parameter(help="Do not ask.", negative=())] = False,
    options: Options = DEFAULTS,
) -> int:
    """Delete failed and dead-lettered tasks for good. On a terminal it asks first."""
    words = choice.check(task_ids)
    if not yes and not agreed(f"Forget {words} for good?"):
        say("Nothing was purged.")
        return FAILED
    return asyncio.run(_do("purge", _purge, task_ids, choice, options))


async def _purge(backend: Backend, task_id: str) -> list[str]:
    await backend.purge(task_id)
    return [task_id]


async def _do(
    act: Literal["replay", "purge"],
    do: Callable[[Backend, str], Awaitable[list[str]]],
    task_ids: Sequence[str],
    choice: Choice,
    options: Options,
    interval: float = 0,
) -> int:
    """`interval`: seconds between two of them."""
    done: dict[str, None] = {}  # in this order
    refused: dict[str, FairleadError] = {}
    async with open_backend(options) as backend:
        async for task_id in _paced(each(await choice.ids(backend, task_ids), act), interval):
            if task_id in done:  # another step of its job was replayed
                continue
            try:
                done |= dict.fromkeys(await do(backend, task_id))
            except (UnknownTask, NotReplayable, NotPurgeable, StepOfJob) as problem:
                if not choice.every:  # of all: somebody else was faster, or it is up to its job
                    refused[task_id] = problem
            except InvalidInput as problem:  # a limit that it needs is gone
                refused[task_id] = problem
        if done:
            after = {DONE_WORDS[act]: [*done][:MOST_NAMED], "count": len(done)}
            await note(backend, act, choice.check(task_ids), None, after)
    if options.output == "json":
        why = {task_id: {"code": one.code, "message": one.message} for task_id, one in refused.items()}
        print_json({DONE_WORDS[act]: [*done], "refused": why})
    else:
        print(f"{_tasks(len(done))} {DONE_WORDS[act]}")
        for task_id, one in refused.items():
            say(f"fairlead: {task_id}: {one.message}")
    return FAILED if refused else DONE


async def _paced(task_ids: Iterable[str], interval: float) -> AsyncIterator[str]:
    pause = 0.0
    for task_id in task_ids:
        await asyncio.sleep(pause)
        yield task_id
        pause = interval


async def _dead(backend: Backend, wanted: DeadFilter) -> AsyncIterator[Task]:
    more, cursor = True, ""
    while more:
        page = await backend.dead_letters.page(PAGE, cursor, wanted)
        for task in page.tasks:
            yield task
        more, cursor = bool(page.next_cursor), page.next_cursor


def _interval(rate: str | None) -> float:
    if rate is None:
        return 0
    try:
        count, seconds = parse_rate(rate)
    except ValueError as problem:
        raise InvalidInput("--rate", str(problem)) from None
    return seconds / count


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
