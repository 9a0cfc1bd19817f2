"""`fairlead type`: which task types there are, and which of them may not start."""

from collections.abc import Iterable
from typing import Annotated

from cyclopts import App, Parameter

from fairlead.backend import Backend
from fairlead.cli.audit import note
from fairlead.cli.listing import LIST, ListOptions, show_all
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import print_answer
from fairlead.shapes.task_type import TaskTypeAnswer

app = App(name="type", help="List, pause and resume task types.")

COLUMNS = {"task type": "task_type", "paused since": "paused_at"}

TaskType = Annotated[str, Parameter(help="The name of the task type.")]


@app.command(name="list")
async def list_types(*, options: ListOptions = LIST) -> None:
    """List the task types that are declared or paused."""

    async def read(backend: Backend) -> Iterable[tuple[str, int | None]]:
        return (await backend.task_types()).items()

    await show_all(options, "task_types", read, lambda one: TaskTypeAnswer.of(*one), COLUMNS)


@app.command
async def pause(task_type: TaskType, /, *, options: Options = DEFAULTS) -> None:
    """Start no more tasks of a type. Those that run are not affected, and new ones are accepted."""
    await _set(task_type, True, options)


@app.command
async def resume(task_type: TaskType, /, *, options: Options = DEFAULTS) -> None:
    """Let the tasks of a paused type start again."""
    await _set(task_type, False, options)


async def _set(task_type: str, paused: bool, options: Options) -> None:
    async with open_backend(options) as backend:
        before = (await backend.task_types()).get(task_type) is not None
        await backend.pause_type(task_type, paused)
        act = "pause_type" if paused else "resume_type"
        await note(backend, act, task_type, {"paused": before}, {"paused": paused})
    answer = {"task_type": task_type, "paused": paused}
    print_answer(options.output, answer, f"{task_type} is {'paused' if paused else 'resumed'}")
