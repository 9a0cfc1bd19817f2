"""`fairlead type`: which task types there are, and which of them may not start."""

from typing import Annotated

from cyclopts import App, Parameter

from fairlead.cli.audit import note
from fairlead.cli.options import DEFAULTS, Options, open_store
from fairlead.cli.output import print_answer, print_list
from fairlead.times import time_text

app = App(name="type", help="List, pause and resume task types.")

TaskType = Annotated[str, Parameter(help="The name of the task type.")]


@app.command(name="list")
async def list_types(*, options: Options = DEFAULTS) -> None:
    """List the task types that are declared or paused."""
    async with open_store(options) as store:
        types = await store.task_types()
    rows = [
        {"task_type": name, "paused": since is not None, "paused_at": time_text(since)}
        for name, since in types.items()
    ]
    columns = {"task type": "task_type", "paused since": "paused_at"}
    print_list(options.output, {"task_types": rows}, "task_types", columns)


@app.command
async def pause(task_type: TaskType, /, *, options: Options = DEFAULTS) -> None:
    """Start no more tasks of a type. Those that run are not affected, and new ones are accepted."""
    await _set(task_type, True, options)


@app.command
async def resume(task_type: TaskType, /, *, options: Options = DEFAULTS) -> None:
    """Let the tasks of a paused type start again."""
    await _set(task_type, False, options)


async def _set(task_type: str, paused: bool, options: Options) -> None:
    async with open_store(options) as store:
        before = (await store.task_types()).get(task_type) is not None
        await store.pause_type(task_type, paused)
        act = "pause_type" if paused else "resume_type"
        await note(store, act, task_type, {"paused": before}, {"paused": paused})
    answer = {"task_type": task_type, "paused": paused}
    print_answer(options.output, answer, f"{task_type} is {'paused' if paused else 'not paused'}")
