"""Tasks that lost their worker run in isolation, a few at a time, and not at the expense of waiting tasks."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import Fairlead
from fairlead.app.handle import TaskHandle
from fairlead.store.store import Store
from fairlead.worker import runner
from tests.apps import suspects
from tests.waiting import wait_until

LOST = 20  # at once, as with a machine
APART, HERE = 4 + 12, LOST - 4 - 12  # four at a time, while twelve have the patience to wait for those


@pytest.fixture
async def fl(new_app: Any) -> AsyncIterator[Fairlead]:
    place, suspects.fl.target = suspects.fl.target, new_app().target
    async with suspects.fl as fl:
        yield fl
    fl.target = place


@pytest.fixture
async def lost(fl: Fairlead, live_store: Store, tmp_path: Path) -> list[TaskHandle[int]]:
    """Tasks whose worker has died."""
    tasks = [await suspects.stay.submit(str(tmp_path), number) for number in range(LOST)]
    await live_store.workers.register("lost", capacity=LOST)
    assert len((await live_store.claim("lost", LOST)).tasks) == LOST
    await live_store.expire("lost")
    return tasks


def places(folder: Path) -> list[int]:
    return [int(begun.name.split("-")[0]) for begun in folder.glob("*-*")]


async def test_a_few_run_apart_a_few_wait_for_that_and_the_rest_runs_at_once(
    fl: Fairlead, lost: list[TaskHandle[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SUSPECT_PATIENCE", 1000)
    async with fl.worker(capacity=LOST):
        await wait_until(lambda: len(places(tmp_path)) == 4 + HERE, because="four apart, the rest here")
        assert places(tmp_path).count(os.getpid()) == HERE
        (tmp_path / "go").touch()
        pids = [await task.result(timeout=40) for task in lost]
    assert len([pid for pid in pids if pid != os.getpid()]) == APART


async def test_a_suspect_without_a_process_in_time_runs_where_its_handler_says(
    fl: Fairlead, lost: list[TaskHandle[int]], tmp_path: Path
) -> None:
    async with fl.worker(capacity=LOST):
        await wait_until(lambda: len(places(tmp_path)) == LOST, because="all of them run")
        assert places(tmp_path).count(os.getpid()) == LOST - 4
        (tmp_path / "go").touch()
        for task in lost:
            ended = await task.wait(timeout=40)
            assert (ended.crash_count, ended.loss_count) == (0, 1)
