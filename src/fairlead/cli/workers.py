"""`fairlead workers`: who is there, and who shall take nothing more."""

from typing import Annotated

from cyclopts import App, Parameter

from fairlead.cli.auditing import note
from fairlead.cli.options import BackendOptions, Output, open_backend
from fairlead.cli.output import print_json, print_table
from fairlead.errors import InvalidInput, UnknownWorker
from fairlead.model.worker import WorkerStats
from fairlead.shapes.worker import WorkerAnswer
from fairlead.times import time_text

app = App(name="workers", help="List workers, and drain them.")


@app.command(name="list")
async def list_workers(*, options: BackendOptions | None = None, output: Output = "table") -> None:
    """List the workers seen within the last hour."""
    async with open_backend(options) as backend:
        workers = (await backend.stats()).workers
    if output == "json":
        print_json({"workers": [WorkerAnswer.from_value(worker) for worker in workers]})
    else:
        columns = ("worker", "name", "status", "running", "reserve", "capabilities", "task types", "seen")
        print_table(columns, [_row(worker) for worker in workers])


def _row(worker: WorkerStats) -> tuple[str, ...]:
    return (
        worker.worker_id,
        worker.name or "-",
        worker.state,
        f"{worker.running} of {worker.capacity}",
        str(worker.reserve),
        ", ".join(worker.capabilities) or "-",
        "any" if worker.task_types is None else ", ".join(worker.task_types) or "none",
        time_text(worker.seen) or "-",
    )


@app.command
async def drain(
    *worker_ids: Annotated[str, Parameter(help="Ids, as `workers list` shows them.")],
    name: Annotated[str | None, Parameter(help="All live workers of this name.")] = None,
    options: BackendOptions | None = None,
    output: Output = "table",
) -> None:
    """Give workers nothing more; what they run goes on."""
    if bool(worker_ids) == (name is not None):
        raise InvalidInput("worker_id", "give the ids of workers, or --name for all of a name")
    async with open_backend(options) as backend:
        workers = (await backend.stats()).workers if name is not None else []
        named = [worker.worker_id for worker in workers if worker.name == name and worker.state != "dead"]
        if name is not None and not named:
            raise UnknownWorker(f"No live worker has the name {name!r}: `fairlead workers list` shows them.")
        for worker_id in (*worker_ids, *named):
            try:
                await backend.workers.drain(worker_id)
                await note(backend, "drain", worker_id, None, {"status": "draining"})
            except UnknownWorker:
                raise UnknownWorker(
                    f"There is no worker {worker_id}: `fairlead workers list` shows them."
                ) from None
            if output == "table":
                print(f"{worker_id} is draining")
    if output == "json":
        print_json({"draining": [*worker_ids, *named]})
