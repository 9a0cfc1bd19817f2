"""The tour goes on: tasks while they run. They tell how far they are, take too long, and are cancelled."""

from typing import Any

import pytest

from fairlead import TaskCancelled, TaskFailed, TaskFunction
from fairlead.model.states import State
from fairlead.testing import Inline, private, run_inline
from tests.apps.tour import fl, greet, render, wait_in_loop, wait_in_process, wait_in_thread

ANYWHERE = pytest.mark.parametrize(
    "wait", [wait_in_loop, wait_in_thread, wait_in_process], ids=["loop", "thread", "process"]
)


async def test_progress_and_output_are_watched_live() -> None:
    async with private(fl), fl.worker():
        task = await render.submit(frames=5)
        frames, fractions = [], []
        async for event in task.watch():  # its state first, then everything that happens, until it has ended
            if event.act == "output":
                frames.append(event.detail["chunk"]["frame"])
            if event.act == "progress":
                fractions.append(event.detail["fraction"])
        assert event.after is State.COMPLETED
        assert frames == [0, 1, 2, 3, 4]
        assert fractions == sorted(fractions)


async def test_who_comes_late_has_missed_nothing() -> None:
    async with private(fl), fl.worker():
        task = await render.submit(frames=3)
        await task.result(timeout=30)
        frames = [event.detail["chunk"]["frame"] async for event in task.watch() if event.act == "output"]
        assert frames == [0, 1, 2]


async def test_what_a_handler_says_can_be_tested_without_any_queue() -> None:
    said = Inline()
    assert await run_inline(render, frames=2, said=said) == "film.mp4"
    assert said.output == [{"frame": 0}, {"frame": 1}]


@ANYWHERE
async def test_what_runs_too_long_is_stopped_wherever_it_runs(wait: TaskFunction[Any, Any, None]) -> None:
    async with private(fl), fl.worker(capacity=1):
        task = await wait.submit(timeout_seconds=2, max_retries=0)
        with pytest.raises(TaskFailed, match="it ran longer than its timeout"):
            await task.result(timeout=30)
        assert await (await greet.submit("Zoë")).result(timeout=30) == "Hi Zoë"  # its slot is free again


@ANYWHERE
async def test_what_runs_can_be_cancelled_wherever_it_runs(wait: TaskFunction[Any, Any, None]) -> None:
    async with private(fl), fl.worker(capacity=1):
        task = await wait.submit()
        async for event in task.watch():
            if event.act == "output":  # it runs
                await task.cancel()
        with pytest.raises(TaskCancelled):
            await task.result()
        assert await (await greet.submit("Zoë")).result(timeout=30) == "Hi Zoë"
