"""`fairlead workers`: list workers, and drain them."""

from typing import Annotated

from cyclopts import App, Parameter

from fairlead.cli.audit import note
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import Columns, print_json, print_list
from fairlead.errors import InvalidInput, UnknownWorker
from fairlead.shapes.worker import WorkerAnswer

app = App(name="workers", help="List workers, and drain them.")

COLUMNS: Columns = {
    "worker": "worker_id",
    "name": "name",
    "status": "status",
    "running": lambda worker: f"{worker['current_load']} of {worker['capacity']}",
    "reserve": "reserve",
    "capabilities": lambda worker: ", ".join(worker["capabilities"]),
    "task types": lambda worker: (
        "any" if worker["task_types"] is None else ", ".join(worker["task_types"]) or "none"
    ),
    "seen": "seen_at",
}


@app.command(name="list")
async def list_workers(*, options: Options = DEFAULTS) -> None:
    """List the workers seen within the last hour."""
    async with open_backend(options) as backend:
        workers = (await backend.stats()).workers
    answer = {"workers": [WorkerAnswer.from_value(worker) for worker in workers]}
    print_list(options.output, answer, "workers", COLUMNS)


@app.command
async def drain(
    *worker_ids: Annotated[str, Parameter(help="Ids, as `workers list` shows them.")],
    name: Annotated[str | None, Parameter(help="All live workers of this name.")] = None,
    options: Options = DEFAULTS,
) -> None:
    """Give workers no more tasks; those that they run continue."""
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
            if options.output == "table":
                print(f"{worker_id} is draining")
    if options.output == "json":
        print_json({"draining": [*worker_ids, *named]})
