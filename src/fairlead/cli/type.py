"""`fairlead type`: which task types there are, and which of them may not start."""

from typing import Annotated

from cyclopts import App, Parameter

from fairlead.cli.auditing import note
from fairlead.cli.options import BackendOptions, Output, open_store
from fairlead.cli.output import print_json, print_table
from fairlead.times import time_text

app = App(name="type", help="List, pause and resume task types.")

TaskType = Annotated[str, Parameter(help="The name of the task type.")]


@app.command(name="list")
async def list_types(*, options: BackendOptions | None = None, output: Output = "table") -> None:
    """List the task types that are declared or paused."""
    async with open_store(options) as store:
        types = await store.task_types()
    if output == "json":
        rows = [
            {"task_type": name, "paused": since is not None, "paused_at": time_text(since)}
            for name, since in types.items()
        ]
        print_json({"task_types": rows})
    else:
        print_table(
            ("task type", "paused since"), [(name, time_text(since) or "-") for name, since in types.items()]
        )


@app.command
async def pause(
    task_type: TaskType, /, *, options: BackendOptions | None = None, output: Output = "table"
) -> None:
    """Start no more tasks of a type. Those that run are not affected, and new ones are accepted."""
    await _set(task_type, True, options, output)


@app.command
async def resume(
    task_type: TaskType, /, *, options: BackendOptions | None = None, output: Output = "table"
) -> None:
    """Let the tasks of a paused type start again."""
    await _set(task_type, False, options, output)


async def _set(task_type: str, paused: bool, options: BackendOptions | None, output: Output) -> None:
    async with open_store(options) as store:
        before = (await store.task_types()).get(task_type) is not None
        await store.pause_type(task_type, paused)
        act = "pause_type" if paused else "resume_type"
        await note(store, act, task_type, {"paused": before}, {"paused": paused})
    if output == "json":
        print_json({"task_type": task_type, "paused": paused})
    else:
        print(f"{task_type} is paused" if paused else f"{task_type} is not paused")
