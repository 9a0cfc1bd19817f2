"""Workers that are stopped: running tasks may finish, the rest is returned as if never claimed."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import Fairlead
from fairlead.app.handle import TaskHandle
from fairlead.client.target import Target
from fairlead.model.states import State
from fairlead.store.store import Store
from tests.apps import draining
from tests.reading import events_of
from tests.waiting import wait_until
from tests.workers import WorkerLauncher, Workers

TARGET = "tests.apps.draining:fl"

# Nothing here waits for a lease to end, so none may end however busy the machine is.
PATIENT = """
[worker]
heartbeat_seconds = 2
missed_heartbeats = 15
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "patient.toml"
    path.write_text(PATIENT)
    return path


@pytest.fixture
async def fl(new_app: Any) -> AsyncIterator[Fairlead]:
    """The app of the worker processes, here only to submit."""
    place, draining.fl.target = draining.fl.target, new_app().target
    async with draining.fl as fl:
        yield fl
    fl.target = place


async def began(task: TaskHandle[Any]) -> None:
    async for message in task.watch():
        if message["type"] == "OUTPUT":
            return
    raise AssertionError(f"it ended without a word: {await task.get()}")


async def states(store: Store) -> set[str]:
    return {worker.state for worker in (await store.stats()).workers}


SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.mark.parametrize("by", SIGNALS)
async def test_running_tasks_may_finish_and_no_new_one_is_begun(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store, tmp_path: Path, by: signal.Signals
) -> None:
    go = tmp_path / "go"
    async with launcher.workers(TARGET, "--capacity", "1") as workers:
        running = await draining.until.submit(str(go))
        await began(running)
        waiting = await draining.pid.submit()
        workers.process.send_signal(by)
        await wait_until(lambda: drains(live_store))
        go.touch()
        assert await workers.exit_code() == 0
    assert (await running.get()).result == "done"
    assert (await waiting.get()).status is State.QUEUED
    assert (await live_store.stats()).workers == []


@pytest.mark.parametrize("by", SIGNALS)
async def test_a_signal_to_the_whole_group_stops_no_running_task(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store, tmp_path: Path, by: signal.Signals
) -> None:
    """Ctrl-C in a terminal, systemd and `tini -g`: each process gets it, and the supervisor decides."""
    go = tmp_path / "go"
    async with launcher.workers(TARGET, "--processes", "2", ready=2) as workers:
        tasks = [await draining.until_in_process.submit(str(go)), await draining.until.submit(str(go))]
        for task in tasks:
            await began(task)
        os.killpg(workers.process.pid, by)
        await wait_until(lambda: drains(live_store))
        go.touch()
        assert await workers.exit_code() == 0
    for task in tasks:
        ended = await task.get()
        assert (ended.result, ended.attempt) == ("done", 1), workers.log_text()


async def drains(store: Store) -> bool:
    return await states(store) == {"draining"}


async def test_after_the_grace_the_rest_returns_to_its_place_as_if_never_claimed(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store
) -> None:
    async with launcher.workers(TARGET, "--capacity", "2", "--grace", "0.2") as workers:
        tasks = [await draining.never.submit() for _ in range(3)]
        for task in tasks[:2]:
            await began(task)
        assert await workers.end() == 0
    for task in tasks:
        given_back = await task.get()
        assert (given_back.status, given_back.retry_count, given_back.crash_count) == (State.QUEUED, 0, 0)
    assert [(await task.explain()).queue_position for task in tasks] == [1, 2, 3]
    assert [event["act"] for event in await events_of(live_store) if event["act"] == "release"] == [
        "release",
        "release",
    ]


async def test_the_second_signal_cuts_the_grace_short(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store
) -> None:
    async with launcher.workers(TARGET, "--grace", "600") as workers:
        task = await draining.never.submit()
        await began(task)
        workers.process.send_signal(signal.SIGTERM)
        await wait_until(lambda: drains(live_store))
        assert await keep_signalling(workers) == 0
    assert (await task.get()).status is State.QUEUED


async def keep_signalling(workers: Workers) -> int:
    """Until it has ended: signals within a second count as one. Its exit code."""
    while workers.process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            # `send_signal` polls first: it could take the exit code of a process that has just ended
            os.kill(workers.process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await workers.process.wait()
    return workers.process.returncode


async def test_signals_within_a_second_count_as_one(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with launcher.workers(TARGET, "--grace", "600") as workers:
        task = await draining.until.submit(str(go))
        await began(task)
        for number in (*SIGNALS, *SIGNALS):
            os.killpg(workers.process.pid, number)
        await wait_until(lambda: drains(live_store))
        go.touch()
        assert await workers.exit_code() == 0
    ended = await task.get()
    assert (ended.result, ended.attempt) == ("done", 1), workers.log_text()


@pytest.mark.parametrize("deaf", [False, True], ids=["blocked", "deaf"])
async def test_a_worker_whose_loop_is_blocked_is_killed_after_the_grace_and_nothing_is_charged(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store, tmp_path: Path, deaf: bool
) -> None:
    async with launcher.workers(TARGET, "--grace", "0.2", "--capacity", "2") as workers:
        other = await draining.never.submit()
        await began(other)
        task = await draining.blocks.submit(str(tmp_path / "blocked"), deaf)
        await wait_until((tmp_path / "blocked").exists)
        assert await workers.end() == 0
        assert "worker_did_not_stop" in workers.log_text()
    for one in (task, other):
        given_back = await one.get()
        assert (given_back.status, given_back.crash_count, given_back.loss_count) == (State.QUEUED, 0, 0)
    assert (await live_store.stats()).workers == []


async def test_the_second_signal_kills_a_worker_whose_loop_is_blocked(
    fl: Fairlead, launcher: WorkerLauncher, tmp_path: Path
) -> None:
    async with launcher.workers(TARGET, "--grace", "600") as workers:
        task = await draining.blocks.submit(str(tmp_path / "blocked"))
        await wait_until((tmp_path / "blocked").exists)
        assert await keep_signalling(workers) == 0
    assert (await task.get()).status is State.QUEUED


async def test_an_idle_worker_goes_at_once(fl: Fairlead, launcher: WorkerLauncher) -> None:
    async with launcher.workers(TARGET, "--processes", "2", ready=2) as workers:
        assert await workers.end() == 0


async def test_a_worker_drained_by_an_operator_ends(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with launcher.workers(TARGET) as workers:
        task = await draining.until.submit(str(go))
        await began(task)
        await live_store.workers.drain(workers.ids()[0])
        await wait_until(lambda: "worker_draining" in workers.log_text())
        go.touch()
        assert await workers.exit_code() == 0
    assert (await task.get()).result == "done"


@pytest.mark.parametrize("handler", [draining.stubborn, draining.sleeps], ids=["loop", "thread"])
async def test_a_handler_that_does_not_stop_ends_with_its_process_and_its_task_is_returned(
    fl: Fairlead, launcher: WorkerLauncher, handler: Any
) -> None:
    async with launcher.workers(TARGET, "--grace", "0") as workers:
        task = await handler.submit()
        await began(task)
        assert await workers.end() == 0
    given_back = await task.get()
    assert (given_back.status, given_back.retry_count, given_back.crash_count) == (State.QUEUED, 0, 0)


async def test_a_worker_in_this_process_returns_its_tasks(fl: Fairlead) -> None:
    async with fl.worker(grace=0):
        task = await draining.never.submit()
        await began(task)
    given_back = await task.get()
    assert (given_back.status, given_back.retry_count, given_back.crash_count) == (State.QUEUED, 0, 0)
    assert (await fl.store.stats()).workers == []


async def test_the_tasks_of_a_claim_under_way_when_draining_begins_are_returned(fl: Fairlead) -> None:
    tasks = [await draining.never.submit() for _ in range(5)]
    async with fl.worker(grace=0, capacity=5) as worker:
        worker.drain(0)
    for task in tasks:
        assert (await task.get()).status is State.QUEUED


def test_the_target_of_an_app_is_passed_to_its_workers() -> None:
    target = Target("redis://there", None, "n", None).or_else(Target("redis://here", "folder", "m", "file"))
    assert target == Target("redis://there", "folder", "n", "file")
