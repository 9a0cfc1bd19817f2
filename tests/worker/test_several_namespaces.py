"""A worker that claims from several namespaces: in turn, and never more than it has room for."""

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.store.namespace import raw
from tests.waiting import wait_until
from tests.workers import WorkerLauncher, Workers

APP = "tests.apps.sharing:fl"
EACH = 60  # tasks in each namespace
CAPACITY = 3


@pytest.fixture
async def other(open_store: Callable[..., Store]) -> Store:
    store = open_store()
    await store.open()
    return store


def both(other: Store, capacity: int = CAPACITY) -> tuple[str, ...]:
    """Options, beside the launcher's own namespace."""
    return "--namespace", other.connection.keys.namespace, "--capacity", str(capacity)


async def all_have(status: State, tasks: dict[Store, list[str]]) -> bool:
    found = [(await store.get(task)).status for store, ids in tasks.items() for task in ids]
    return set(found) == {status}


async def submitted(store: Store, task_type: str, count: int = 1, **parameters: Any) -> list[str]:
    answers = await store.submit(*[NewTask(task_type=task_type, parameters=parameters) for _ in range(count)])
    return [answer.task_id for answer in answers]  # type: ignore[union-attr]


async def test_it_takes_turns_and_never_exceeds_its_capacity(
    live_store: Store, other: Store, launcher: WorkerLauncher, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    tasks = {
        store: await submitted(store, "step", EACH, record=str(record), label=label)
        for store, label in ((live_store, "a"), (other, "b"))
    }
    async with launcher.workers(APP, *both(other), ready=2):
        await wait_until(lambda: all_have(State.COMPLETED, tasks), 40)
    lines = [line.split() for line in record.read_text().splitlines()]
    running, most = 0, 0
    for sign, _ in lines:
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert most == CAPACITY
    starts = [label for sign, label in lines if sign == "+"]
    assert len(starts) == 2 * EACH
    # while both have work, neither waits for the other to end; how far one is ahead is up to the machine
    ahead = [abs(starts[:count].count("a") - starts[:count].count("b")) for count in range(EACH)]
    assert max(ahead) <= EACH // 2, starts


async def test_one_has_all_slots_while_the_others_have_no_work(
    live_store: Store, other: Store, launcher: WorkerLauncher, tmp_path: Path
) -> None:
    async with launcher.workers(APP, *both(other), ready=2):
        for store, path in ((live_store, tmp_path / "one"), (other, tmp_path / "two")):
            tasks = {store: await submitted(store, "until", CAPACITY, path=str(path))}
            await wait_until(partial(all_have, State.EXECUTING, tasks))
            path.touch()
            await wait_until(partial(all_have, State.COMPLETED, tasks))


async def test_a_handler_works_in_the_namespace_of_its_task(
    live_store: Store, other: Store, launcher: WorkerLauncher
) -> None:
    async with launcher.workers(APP, *both(other), ready=2):
        for store in (live_store, other):
            asynchronous, threaded = (
                await submitted(store, "follow"),
                await submitted(store, "follow_in_thread"),
            )
            tasks = {store: asynchronous + threaded}
            await wait_until(partial(all_have, State.COMPLETED, tasks))
            follower = (await store.get(asynchronous[0])).result
            assert (await store.get(follower)).status is State.QUEUED
            assert (await store.get(threaded[0])).result == store.connection.keys.namespace


async def test_a_full_worker_steps_aside_when_it_is_called(
    live_store: Store, other: Store, launcher: WorkerLauncher, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    async with launcher.workers(APP, *both(other, capacity=1), ready=2):
        (worker,) = [one.worker_id for one in await other.workers.all()]
        record = other.connection.keys.key("worker", worker)

        async def waits() -> bool:
            return bool(await raw(other).hexists(record, "idle"))

        await wait_until(waits)
        (first,) = await submitted(live_store, "until", path=str(release))
        await wait_until(lambda: all_have(State.EXECUTING, {live_store: [first]}))
        (second,) = await submitted(other, "until", path=str(release))

        async def has_stepped_aside() -> bool:
            return (await raw(other).hget(record, "stalled") or b"").startswith(
                b"aside"
            ) and not await waits()

        await wait_until(has_stepped_aside)
        assert (await other.get(second)).status is State.QUEUED
        release.touch()
        await wait_until(lambda: all_have(State.COMPLETED, {live_store: [first], other: [second]}))


async def test_what_a_killed_process_held_runs_again_in_each(
    live_store: Store, other: Store, launcher: WorkerLauncher, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    async with launcher.workers(APP, *both(other), ready=2) as workers:
        tasks = {store: await submitted(store, "until", path=str(release)) for store in (live_store, other)}
        await wait_until(lambda: all_have(State.EXECUTING, tasks))
        fences = {store: (await store.get(ids[0])).fence for store, ids in tasks.items()}
        (child,) = workers.children()
        os.kill(child, signal.SIGKILL)
        await workers.ready(4)
        release.touch()
        await wait_until(lambda: all_have(State.COMPLETED, tasks), 40)
        for store, ids in tasks.items():
            task = await store.get(ids[0])
            assert task.fence > fences[store]
            assert task.crash_count == 1


async def test_drained_in_one_namespace_it_works_for_the_others(
    live_store: Store, other: Store, launcher: WorkerLauncher, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    release.touch()
    async with launcher.workers(APP, *both(other), ready=2) as workers:
        (there,) = [one.worker_id for one in await other.workers.all()]
        await other.workers.drain(there)

        async def has_left() -> bool:
            return [one.state for one in await other.workers.all()] != ["active"]

        await wait_until(has_left)
        tasks = {live_store: await submitted(live_store, "until", CAPACITY, path=str(release))}
        await wait_until(lambda: all_have(State.COMPLETED, tasks))
        assert await ended_by_sigterm(workers) == 0


async def ended_by_sigterm(workers: Workers) -> int:
    async with asyncio.timeout(40):
        return await workers.end()
