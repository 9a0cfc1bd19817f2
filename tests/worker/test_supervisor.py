"""The supervisor of worker processes: replaces those that die, and stops if none can be started."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead import Fairlead, errors
from fairlead.model.states import State
from fairlead.store.store import Store
from fairlead.testing import check
from tests.apps import draining
from tests.engine_processes import launch, opened
from tests.waiting import wait_until
from tests.workers import WorkerLauncher

TARGET = "tests.apps.draining:fl"


@pytest.fixture
async def fl(new_app: Callable[[], Fairlead]) -> AsyncIterator[Fairlead]:
    """The app of the worker processes, here only to submit."""
    place, draining.fl.target = draining.fl.target, new_app().target
    async with draining.fl as fl:
        yield fl
    fl.target = place


async def test_a_killed_process_is_replaced_and_its_task_runs_elsewhere(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store
) -> None:
    async with launcher.workers(TARGET, "--processes", "2", "--capacity", "1", ready=2) as workers:
        task = await draining.never.submit()
        async for message in task.watch():
            if message["type"] == "OUTPUT":
                break
        first = await task.get()
        before = workers.children()
        assert len(before) == 2
        for number in (signal.SIGSTOP, signal.SIGKILL):  # the second must not get the task of the first
            for pid in before:
                os.kill(pid, number)
        await workers.ready(4)
        await wait_until(lambda: len(set(workers.children()) - set(before)) == 2)
        async for message in task.watch():
            if message["type"] == "OUTPUT" and message["fence"] > first.fence:
                break
        again = await task.get()
        assert (again.status, again.crash_count, again.retry_count) == (State.EXECUTING, 1, 0)
        assert again.assigned_worker_id != first.assigned_worker_id
        await task.cancel()
        assert await workers.end() == 0
    assert (await live_store.stats()).workers == []


@pytest.mark.parametrize("how", ["exit", "native", "gathered"])
async def test_a_process_that_ends_as_if_all_were_well_has_died_all_the_same(
    fl: Fairlead, launcher: WorkerLauncher, how: str
) -> None:
    async with launcher.workers(TARGET, "--capacity", "1") as workers:
        task = await draining.leaves.submit(how)
        await workers.ready(2)
        assert (await task.get()).crash_count >= 1
        assert "exit_code=0" in workers.log_text()
        with contextlib.suppress(errors.AlreadyFinished):  # it crashes again and again until it is dead
            await task.cancel()
        assert await workers.end() == 0


@pytest.mark.parametrize("handler", [draining.stubborn, draining.sleeps], ids=["loop", "thread"])
async def test_a_handler_that_nothing_stops_ends_with_its_process_and_another_takes_its_place(
    fl: Fairlead, launcher: WorkerLauncher, handler: Any
) -> None:
    async with launcher.workers(TARGET, "--capacity", "1") as workers:
        task = await handler.submit(timeout_seconds=0.5, max_retries=0)
        following = await draining.pid.submit()
        ended = await task.wait(timeout=40)
        assert ended.error
        assert (ended.status, ended.error.code, ended.crash_count) == (State.DEAD_LETTER, "timeout", 0)
        assert await following.result(timeout=40) in workers.children()
        assert len(workers.ids()) == 2


@pytest.mark.parametrize(
    ("processes", "target", "code", "complaint"),
    [
        ("1", "nope:fl", 2, "app: there is no module 'nope' in "),
        ("3", "tests.apps.nope:fl", 2, "app: there is no module 'tests.apps.nope' in "),
        ("1", "tests.apps.idle:nope", 2, "app: tests.apps.idle has no 'nope'"),
        ("3", "tests.apps.idle:number", 2, "app: tests.apps.idle:number is a int, not a Fairlead"),
        ("1", "tests.apps.idle", 2, "app: 'tests.apps.idle' is not of the form module:attribute"),
        ("3", "tests.apps.idle:fl", 2, "tasks: there is nothing to run: decorate a function with @fl.task"),
        ("1", "tests.apps.broken:fl", 1, "RuntimeError: the licence has run out"),
        ("3", "tests.apps.leaving:fl", 2, "app: tests.apps.leaving calls sys.exit(0) when it is imported"),
    ],
)
async def test_an_app_that_cannot_be_loaded_is_reported_once_and_not_retried(
    launcher: WorkerLauncher, processes: str, target: str, code: int, complaint: str
) -> None:
    process = launcher.start(target, "--processes", processes)
    assert await process.exit_code() == code
    assert process.log_text().count(complaint) == 1, process.log_text()
    assert "WARNING" not in process.log_text(), "nothing was tried again"


async def test_a_command_whose_app_ends_the_process_as_if_all_were_well_fails(
    launcher: WorkerLauncher, tmp_path: Path
) -> None:
    (tmp_path / "gone.py").write_text("import os\nos._exit(0)\n")
    process = launcher.start("gone:fl", "--processes", "2")
    assert await process.exit_code() == 1


async def test_a_bad_option_is_reported_and_not_retried(launcher: WorkerLauncher) -> None:
    process = launcher.start(TARGET, "--capacity", "2", "--reserve", "3")
    assert await process.exit_code() == 2
    assert "reserve: is not a whole number from 0 to 2" in process.log_text()


async def test_a_missing_server_is_reported(launcher: WorkerLauncher) -> None:
    process = WorkerLauncher(launcher.folder, lambda: ("--engine", "unix:///nowhere/s")).start(TARGET)
    assert await process.exit_code() == 3
    assert "The store did not answer" in process.log_text()


async def test_a_worker_continues_when_the_owner_of_its_embedded_server_leaves_before_it_registered(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    owner = await opened(launch(data))
    launcher = WorkerLauncher(tmp_path, lambda: ("--data", str(data)))
    async with launcher.workers("tests.apps.orphaned:fl", ready=0) as workers:
        await wait_until((tmp_path / "adopted").exists, 40)
        await owner.close()
        await workers.ready()
        assert len(workers.ids()) == 1, workers.log_text()
        assert workers.log_text().count("The store did not answer") == 1, "the first process found no server"
        async with Fairlead(data=data) as fl:
            task = await fl.submit("echo", {"text": "here"})
            assert await task.result(timeout=30) == "here"
            assert await check(fl) == []
        assert await workers.end() == 0
