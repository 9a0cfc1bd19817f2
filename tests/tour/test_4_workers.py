"""The tour continues: workers start, stop and die, and nothing is lost."""

import os
import signal
from datetime import UTC, datetime
from typing import Any

from fairlead import TaskHandle
from fairlead.model.states import State
from fairlead.testing import FakeClock, private
from tests.apps import tour
from tests.apps.tour import fl, greet, wait_in_loop
from tests.waiting import wait_until
from tests.workers import WorkerLauncher

APP = "tests.apps.tour:fl"


async def runs(task: TaskHandle[Any], after_fence: int = 0) -> int:
    """Until it runs (again); its fence."""
    async for message in task.watch():
        if message["type"] == "OUTPUT" and message["fence"] > after_fence:
            return int(message["fence"])
    raise AssertionError("it ended before")


async def test_a_worker_process_runs_the_tasks_of_an_app(launcher: WorkerLauncher) -> None:
    async with private(fl), launcher.workers(APP) as workers:  # fairlead worker tests.apps.tour:fl
        task = await greet.submit("Zoë")
        assert await task.result(timeout=30) == "Hi Zoë"
        assert (await task.get()).assigned_worker_id == workers.ids()[0]


async def test_a_worker_that_is_stopped_returns_what_it_cannot_finish(launcher: WorkerLauncher) -> None:
    async with private(fl):
        task = await wait_in_loop.submit()
        async with launcher.workers(APP, "--grace", "0.1") as workers:
            await runs(task)
            assert await workers.end(signal.SIGTERM) == 0
        given_back = await task.get()
        assert (given_back.status, given_back.attempt) == (State.QUEUED, 1)  # as if it had never been claimed


async def test_a_task_whose_worker_is_killed_runs_elsewhere(launcher: WorkerLauncher) -> None:
    async with private(fl), launcher.workers(APP) as first:
        task = await wait_in_loop.submit()
        fence = await runs(task)
        async with launcher.workers(APP):
            os.killpg(first.process.pid, signal.SIGKILL)
            assert await runs(task, after_fence=fence) > fence  # its earlier worker can no longer change it
            again = await task.get()
            assert (again.attempt, again.retry_count) == (2, 0)  # a lost worker is not a failure
            await task.cancel()


async def test_a_cron_submits_a_task_at_every_tick() -> None:
    tour.reports.clear()
    clock = FakeClock(in_ms(datetime(2026, 1, 1, 2, 29, 59, 990_000, UTC)))
    async with private(fl, clock), fl.worker():
        await wait_until(lambda: fl.store.crons.last("report"))
        clock.advance(0.01)
        await wait_until(lambda: tour.reports)
    assert tour.reports == [datetime(2026, 1, 1, 2, 30, tzinfo=UTC)]


def in_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
