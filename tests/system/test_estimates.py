"""A real server and a real worker: whoever waits learns how long, and how often that was right is counted."""

import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.model.estimate import Estimate
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.commands import Shell
from tests.waiting import wait_until

APP = """
import asyncio

from fairlead import Fairlead

fl = Fairlead()


@fl.task
async def draw(seconds: float) -> None:
    await asyncio.sleep(seconds)
"""
RUN_SECONDS = 0.1
BUSY = [NewTask(task_type="draw", parameters={"seconds": 3_600}) for _ in range(2)]


def drawing(priority: str = "medium") -> NewTask:
    return NewTask(task_type="draw", parameters={"seconds": RUN_SECONDS}, priority=priority)


@pytest.fixture
def shell(shell: Shell) -> Shell:
    return replace(shell, env={"FAIRLEAD_ESTIMATES__ENABLED": "true"})


@pytest.fixture
async def serving(shell: Shell, tmp_path: Path) -> AsyncIterator[Process]:
    """A server, and a worker with two slots."""
    (tmp_path / "app.py").write_text(APP)
    server = await shell.start("server", "--port", "0")
    worker = await shell.start("worker", "app:fl", "--capacity", "2", "--grace", "0")
    yield server
    for process in (worker, server):
        process.terminate()
        await process.communicate()


async def estimator_of(server: Process) -> int:
    """The process that makes forecasts."""
    found: list[int] = []

    def is_there() -> bool:
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        found[:] = [int(child) for child in children if _is_estimator(child)]
        return bool(found)

    await wait_until(is_there)
    return found[0]


async def estimate(store: Store) -> Estimate:
    """Of a task that waits behind those that run."""
    found: list[Estimate] = []

    async def is_known() -> bool:
        submitted = await store.submit_one(drawing("low"))
        await store.cancel(submitted.task_id)
        if submitted.estimate and submitted.estimate.p50_seconds:
            found.append(submitted.estimate)
        return bool(found)

    await wait_until(is_known)
    return found[0]


@pytest.mark.usefixtures("serving")
async def test_a_new_task_is_told_how_long_it_waits_and_the_figures_show_how_true_that_was(
    live_store: Store,
) -> None:
    await live_store.submit(*BUSY)
    assert (await estimate(live_store)).p90_seconds > 0
    waiting = [await live_store.submit_one(drawing()) for _ in range(6)]
    for busy in BUSY:
        await live_store.cancel(busy.task_id)

    async def is_counted() -> bool:
        return (await live_store.stats()).estimates.count >= len(waiting)

    await wait_until(is_counted)
    quality = (await live_store.stats()).estimates
    assert quality.coverage_p90 is not None
    assert quality.within_total + quality.beyond_total == quality.count
    for one in waiting:
        task = await live_store.get(one.task_id)
        assert task.estimate_given == one.estimate
        assert task.waited_seconds is not None


async def test_an_estimator_that_dies_is_replaced(live_store: Store, serving: Process) -> None:
    await live_store.submit(*BUSY)
    before = await estimator_of(serving)
    os.kill(before, signal.SIGKILL)

    async def is_another() -> bool:
        return await estimator_of(serving) != before

    await wait_until(is_another)
    await live_store.connection.client.delete(live_store.connection.keys.key("curves"))
    assert (await estimate(live_store)).p90_seconds > 0


async def test_the_estimator_ends_with_its_server(shell: Shell) -> None:
    server = await shell.start("server", "--port", "0")
    estimator = await estimator_of(server)
    server.kill()
    await server.communicate()
    await wait_until(lambda: not Path(f"/proc/{estimator}").exists() or _is_zombie(estimator))


def _is_estimator(pid: str) -> bool:
    try:
        return "estimator_process" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it has ended
        return False


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
