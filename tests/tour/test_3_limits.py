"""The tour continues: limits. Every constraint is one: a GPU, a rate of calls, a licence, gigabytes."""

import asyncio
from itertools import pairwise

import pytest

from fairlead import Fairlead, LimitFull
from fairlead.model.states import State
from fairlead.settings import Slots
from fairlead.testing import private
from tests.apps.tour import draw, fl
from tests.workers import WorkerLauncher


async def test_a_limit_of_one_holds_over_two_worker_processes(launcher: WorkerLauncher) -> None:
    async with private(fl), launcher.workers("tests.apps.tour:fl", "--processes", "2", ready=2):
        tasks = [await draw.submit(f"picture {n}") for n in range(6)]
        times = sorted([await task.result(timeout=30) for task in tasks])
        for (_, ended), (began, _) in pairwise(times):
            assert began >= ended  # no two had the GPU at once


async def test_a_full_limit_is_why_a_task_waits() -> None:
    async with private(fl), fl.acquire("gpu"):  # another program uses it, without a task
        task = await draw.submit("a robot")
        async with fl.worker():
            assert (await task.explain()).sentence.startswith("It waits for a unit of gpu, which ")


async def test_an_operator_changes_a_limit_while_tasks_run() -> None:
    async with private(fl), fl.worker():
        await fl.store.limits.set("gpu", Slots(limit=0))  # `fairlead limit set gpu --limit 0`: a pause
        task = await draw.submit("a robot")
        assert (await task.get()).status is State.QUEUED
        await fl.store.limits.set("gpu", Slots(limit=2))
        await task.result(timeout=30)


async def test_a_rate_bounds_how_many_start_in_a_period() -> None:
    fl = Fairlead()
    fl.limit("api", rate="100/s", burst=1)

    @fl.task(limits={"api": 1})
    async def call() -> None: ...

    async with private(fl), fl.worker():
        tasks = [await call.submit() for _ in range(5)]
        starts = sorted([(await task.wait(timeout=30)).started_at or 0 for task in tasks])
        assert starts[-1] - starts[0] >= 40  # ms: five of them are four intervals apart


async def test_a_limit_named_like_the_task_is_declared_with_one_word() -> None:
    fl = Fairlead()

    @fl.task("call_external_api", max_concurrent=10)
    async def call(url: str) -> str:
        return url

    async with private(fl):
        task = await call.submit("http://there")
        assert (await task.get()).limits == {"call_external_api": 1}


async def test_a_limit_can_be_held_without_a_task() -> None:
    async with private(fl):
        async with fl.acquire("gpu", holder="notebook") as lease:  # renewed for as long as the block runs
            with pytest.raises(LimitFull):
                async with fl.acquire("gpu"):
                    pass
            assert lease.fence > 0  # let what you write to refuse a smaller one

        waiting = asyncio.create_task(hold_for_a_moment(wait=30))
        async with fl.acquire("gpu", wait=30):
            pass
        await waiting


async def hold_for_a_moment(wait: float) -> None:
    async with fl.acquire("gpu", wait=wait):
        await asyncio.sleep(0)
