"""Handlers that put out more than can be sent: what waits is bounded; a handler that waits loses nothing."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead import Fairlead
from fairlead.store.store import Store
from tests.apps import talking
from tests.workers import WorkerLauncher, Workers

TARGET = "tests.apps.talking:fl"
COUNT, SIZE = 5_000, 30_000  # 150 MB
MOST_MEGABYTES = 80  # that a worker may grow by: much less than that, and more than the noise


@pytest.fixture
async def fl(new_app: Callable[[], Fairlead]) -> AsyncIterator[Fairlead]:
    """The app of the worker processes, here only to submit."""
    place, talking.fl.target = talking.fl.target, new_app().target
    async with talking.fl as fl:
        yield fl
    fl.target = place


def peak_megabytes(workers: Workers) -> float:
    (pid,) = workers.children()
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


HANDLERS: dict[str, tuple[Any, bool]] = {
    "loop": (talking.floods, False),
    "loop, awaited": (talking.floods, True),
    "thread": (talking.floods_in_thread, True),
    "process": (talking.floods_in_process, True),
}


@pytest.mark.timeout(200)
@pytest.mark.parametrize("place", HANDLERS)
async def test_output_that_waits_takes_little_memory(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store, place: str
) -> None:
    handler, waits = HANDLERS[place]
    async with launcher.workers(TARGET) as workers:
        await (await handler.submit(1, 10, waits)).result(timeout=60)
        before = peak_megabytes(workers)
        task = await handler.submit(COUNT, SIZE, waits)
        assert await task.result(timeout=150) == COUNT
        assert peak_megabytes(workers) - before < MOST_MEGABYTES
        log = workers.log_text()
        assert await workers.end() == 0
    last = (await live_store.outputs(task.task_id))[-1]
    assert last.chunk[0] == COUNT - 1, "the latest are kept"
    assert (last.seq == COUNT) is waits, "a handler that waits loses none; the store counts what it was sent"
    assert ("output_dropped" in log) is not waits
