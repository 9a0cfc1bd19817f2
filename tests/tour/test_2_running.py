"""The tour continues: running tasks. They report progress, take too long, and are cancelled."""

from typing import Any

import pytest

from fairlead import TaskCancelled, TaskFailed, TaskFunction
from fairlead.testing import Inline, private, run_inline
from tests.apps.tour import fl, greet, render, wait_in_loop, wait_in_process, wait_in_thread

ANYWHERE = pytest.mark.parametrize(
    "wait", [wait_in_loop, wait_in_thread, wait_in_process], ids=["loop", "thread", "process"]
)


async def test_progress_and_output_are_watched_live() -> None:
    async with private(fl), fl.worker():
        task = await render.submit(frames=5)
        frames, fractions = [], []
        async for message in task.watch():  # its state first, then all that happens, until it has ended
            if message["type"] == "OUTPUT":
                frames.append(message["chunk"]["frame"])
            if message["type"] == "PROGRESS":
                fractions.append(message["fraction"])
        assert message["type"] == "JOB_COMPLETE"
        assert frames == [0, 1, 2, 3, 4]
        assert fractions == sorted(fractions)


async def test_a_late_watcher_has_missed_nothing() -> None:
    async with private(fl), fl.worker():
        task = await render.submit(frames=3)
        await task.result(timeout=30)
        frames = [message["chunk"]["frame"] async for message in task.watch() if message["type"] == "OUTPUT"]
        assert frames == [0, 1, 2]


async def test_the_reports_of_a_handler_can_be_tested_without_any_queue() -> None:
    said = Inline()
    assert await run_inline(render, frames=2, said=said) == "film.mp4"
    assert said.output == [{"frame": 0}, {"frame": 1}]


@ANYWHERE
async def test_a_task_that_takes_too_long_is_stopped_wherever_it_runs(
    wait: TaskFunction[..., ..., Any, None],
) -> None:
    async with private(fl), fl.worker(capacity=1):
        task = await wait.submit(timeout_seconds=2, max_retries=0)
        with pytest.raises(TaskFailed, match="it ran longer than its timeout"):
            await task.result(timeout=30)
        assert await (await greet.submit("Zoë")).result(timeout=30) == "Hi Zoë"  # its slot is free again


@ANYWHERE
async def test_a_running_task_can_be_cancelled_wherever_it_runs(
    wait: TaskFunction[..., ..., Any, None],
) -> None:
    async with private(fl), fl.worker(capacity=1):
        task = await wait.submit()
        async for message in task.watch():
            if message["type"] == "OUTPUT":  # it runs
                await task.cancel()
        with pytest.raises(TaskCancelled):
            await task.result()
        assert await (await greet.submit("Zoë")).result(timeout=30) == "Hi Zoë"
