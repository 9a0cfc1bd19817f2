"""Workers whose event loop is blocked get no tasks, and tasks that they have not begun run elsewhere."""

import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairlead import Fairlead
from fairlead.app.handle import TaskHandle
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.apps import draining
from tests.reading import events_of
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


async def idle_workers(store: Store) -> int:
    counted: Any = await store.connection.client.hget(store.connection.keys.key("meta"), "idle_workers")
    return int(counted or 0)


async def test_no_task_waits_in_a_worker_whose_loop_is_blocked_while_another_is_idle(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store, tmp_path: Path
) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    async with launcher.workers(TARGET, "--processes", "2", "--capacity", "4", ready=2) as workers:
        await wait_until(lambda: has_idle(live_store, 2))
        hold = tmp_path / "hold"
        blocked = await draining.blocks_until.submit(str(began), str(go), str(hold))
        await wait_until(lambda: is_executing(blocked))
        await wait_until(lambda: has_idle(live_store, 2), because="it has room, and waits for more")
        hold.touch()
        await wait_until(began.exists)
        pids = set()
        for _ in range(6):  # one of the first two is handed to the blocked one
            task = await draining.pid.submit()
            pids.add(await task.result(timeout=30))
            ended = await task.get()
            assert (ended.attempt, ended.crash_count, ended.loss_count) == (1, 0, 0)
        assert await is_executing(blocked)
        go.touch()
        assert await blocked.result(timeout=30) not in pids
        assert (await blocked.get()).attempt == 1
        assert await workers.end() == 0
    await ended_once(live_store)


async def has_idle(store: Store, count: int) -> bool:
    return await idle_workers(store) == count


async def ended_once(store: Store) -> None:
    """Tasks that were returned and claimed again."""
    events = await events_of(store)
    completed = Counter(event["task"] for event in events if event["act"] == "complete")
    assert set(completed.values()) == {1}


async def test_tasks_claimed_together_with_one_that_blocks_start_elsewhere(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store, tmp_path: Path
) -> None:
    """One trip brings several tasks, and the first holds up the loop before the others have begun."""
    began, go = tmp_path / "began", tmp_path / "go"
    blocker = NewTask(
        task_type="blocks_until", parameters={"began": str(began), "path": str(go)}, priority="high"
    )
    others = [NewTask(task_type="pid") for _ in range(3)]
    await live_store.submit(blocker, *others)
    async with launcher.workers(TARGET, "--capacity", "8"):
        await wait_until(began.exists)
        async with launcher.workers(TARGET, "--capacity", "8"):
            for task in others:
                await wait_until(partial(has_completed, live_store, task), 30)
            assert (await live_store.get(blocker.task_id)).status is State.EXECUTING
            go.touch()
            await wait_until(lambda: has_completed(live_store, blocker), 30)
    for task in (blocker, *others):
        assert (await live_store.get(task.task_id)).attempt == 1


async def has_completed(store: Store, task: NewTask) -> bool:
    return (await store.get(task.task_id)).status is State.COMPLETED


async def test_a_worker_that_answers_again_is_idle_again_and_runs_no_returned_task(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store, tmp_path: Path
) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    async with launcher.workers(TARGET, "--capacity", "4") as workers:
        await wait_until(lambda: has_idle(live_store, 1))
        hold = tmp_path / "hold"
        blocked = await draining.blocks_until.submit(str(began), str(go), str(hold))
        await wait_until(lambda: is_executing(blocked))
        await wait_until(lambda: has_idle(live_store, 1), because="it has room, and waits for more")
        hold.touch()
        await wait_until(began.exists)
        noted = tmp_path / "noted"
        task = await draining.notes.submit(str(noted))
        await wait_until(lambda: "worker_silent" in workers.log_text(), 30)
        await wait_until(lambda: is_queued(task))
        assert await idle_workers(live_store) == 0
        go.touch()
        await blocked.result(timeout=30)
        await task.result(timeout=30)  # by the same worker, which has claimed it again
        assert noted.read_text() == "1\n", "it ran once"
        await wait_until(lambda: has_idle(live_store, 1))
        assert "worker_answers" in workers.log_text()
        assert await workers.end() == 0


async def is_queued(task: TaskHandle[Any]) -> bool:
    return (await task.get()).status is State.QUEUED


async def is_executing(task: TaskHandle[Any]) -> bool:
    return (await task.get()).status is State.EXECUTING


async def test_a_stopped_worker_is_relieved_too(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store
) -> None:
    async with (
        launcher.workers(TARGET, "--capacity", "4") as first,
        launcher.workers(TARGET, "--capacity", "4") as second,
    ):
        await wait_until(lambda: has_idle(live_store, 2))
        (pid,) = first.children()
        os.kill(pid, signal.SIGSTOP)
        tasks = [await draining.pid.submit() for _ in range(4)]
        assert {await task.result(timeout=30) for task in tasks} == set(second.children())
        os.kill(pid, signal.SIGCONT)
        await wait_until(lambda: "worker_answers" in first.log_text())
        assert await first.end() == 0
    await ended_once(live_store)


async def test_a_worker_in_this_process_is_relieved_by_its_thread(
    fl: Fairlead, launcher: WorkerLauncher, live_store: Store, tmp_path: Path
) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    async with launcher.workers(TARGET, "--capacity", "1") as others:
        busy = await draining.until.submit(str(began))
        await wait_until(lambda: is_executing(busy))
        blocked = NewTask(
            task_type="blocks_until", parameters={"began": str(began), "path": str(go)}, priority="high"
        )
        opens = NewTask(task_type="opens", parameters={"path": str(go)})
        await live_store.submit(blocked, opens)
        async with fl.worker(capacity=4):
            # It claims both, and the first blocks the loop of this test: only the other worker can end
            # that, which is free from now on.
            await wait_until(partial(has_completed, live_store, blocked), 60)
        for task in (blocked, opens):
            assert (await live_store.get(task.task_id)).attempt == 1
        assert await others.end() == 0
