"""`fairlead workers`: list workers, drain them, and expire dead ones."""

from typing import Annotated

from cyclopts import App, Parameter

from fairlead.backend import Backend
from fairlead.cli.audit import note
from fairlead.cli.listing import LIST, ListOptions, show_all
from fairlead.cli.options import DEFAULTS, Options, open_backend, open_store
from fairlead.cli.output import print_answer, print_json
from fairlead.cli.table import Columns
from fairlead.errors import InvalidInput, UnknownWorker
from fairlead.model.worker import WorkerStats
from fairlead.shapes.worker import WorkerAnswer
from fairlead.times import time_text

app = App(name="workers", help="List workers, drain them, and expire dead ones.")

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
LEAST_USED = ("reserve", "capabilities", "name", "task types", "seen")


@app.command(name="list")
async def list_workers(*, options: ListOptions = LIST) -> None:
    """List the workers seen within the last hour."""

    async def read(backend: Backend) -> list[WorkerStats]:
        return (await backend.stats()).workers

    await show_all(options, "workers", read, WorkerAnswer.from_value, COLUMNS, LEAST_USED)


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
                raise _unknown(worker_id) from None
            if options.output == "table":
                print(f"{worker_id} is draining")
    if options.output == "json":
        print_json({"draining": [*worker_ids, *named]})


@app.command
async def expire(
    worker_id: Annotated[str, Parameter(help="Its id, as `workers list` shows it.")],
    /,
    *,
    force: Annotated[bool, Parameter(help="Also if it was seen a short time ago.", negative=())] = False,
    options: Options = DEFAULTS,
) -> None:
    """End the leases of a worker that is certainly dead, instead of waiting until they run out."""
    async with open_store(options) as store:
        worker = next((one for one in await store.workers.all() if one.worker_id == worker_id), None)
        if worker is None:
            raise _unknown(worker_id)
        if worker.state != "dead" and not force:
            raise InvalidInput(
                "--force",
                f"{worker_id} was alive at {time_text(worker.seen)}: if it still runs, its tasks run "
                "twice; if it is certainly dead, add --force",
            )
        expired = await store.expire(worker_id)
        await note(store, "expire", worker_id, {"status": worker.state}, {"expired": expired})
    answer = {"worker_id": worker_id, "expired": expired}
    leases = "1 lease" if expired == 1 else f"{expired} leases"
    print_answer(options.output, answer, f"{worker_id} is forgotten; {leases} ended")


def _unknown(worker_id: str) -> UnknownWorker:
    return UnknownWorker(f"There is no worker {worker_id}: `fairlead workers list` shows them.")
