"""`fairlead worker --url`: worker processes that know nothing but a gateway, and what may happen to them."""

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import Context, Fairlead
from fairlead.app.handle import TaskHandle
from fairlead.model.states import State
from fairlead.model.task import NewTask, Submitted
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.serving import Gateway, serving
from tests.apps import draining
from tests.client.answering import kept_port, losing_answers, unreachable_url
from tests.client.conftest import QUICK, client_of
from tests.connections import patient_store
from tests.servers import Server
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


async def began(task: TaskHandle[Any]) -> None:
    async for message in task.watch():
        if message["type"] == "OUTPUT":
            return
    raise AssertionError(f"it ended without a word: {await task.get()}")


async def test_it_runs_tasks_and_leaves_in_order(
    fl: Fairlead, launcher: WorkerLauncher, store: Store
) -> None:
    async with launcher.workers(TARGET, "--processes", "2", "--name", "studio", ready=2) as workers:
        names = {worker.name for worker in (await store.stats()).workers}
        pids = {await (await draining.pid.submit()).result(timeout=30) for _ in range(5)}
        assert await workers.end() == 0
    assert names == {"studio"}
    assert os.getpid() not in pids
    assert (await store.stats()).workers == []


async def test_running_tasks_may_finish_when_it_is_stopped(
    fl: Fairlead, launcher: WorkerLauncher, store: Store, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with launcher.workers(TARGET, "--capacity", "1") as workers:
        running = await draining.until.submit(str(go))
        await began(running)
        waiting = await draining.pid.submit()
        workers.process.send_signal(signal.SIGTERM)

        async def drains() -> bool:
            return {worker.state for worker in (await store.stats()).workers} == {"draining"}

        await wait_until(drains)
        go.touch()
        assert await workers.exit_code() == 0
    assert (await running.get()).result == "done"
    assert (await waiting.get()).status is State.QUEUED


async def test_tasks_that_do_not_finish_in_time_are_returned_unrun(
    fl: Fairlead, launcher: WorkerLauncher
) -> None:
    async with launcher.workers(TARGET, "--grace", "0.2") as workers:
        task = await draining.never.submit()
        await began(task)
        assert await workers.end() == 0
    back = await task.get()
    assert (back.status, back.attempt) == (State.QUEUED, 1)


async def test_a_task_that_runs_is_cancelled(fl: Fairlead, launcher: WorkerLauncher, store: Store) -> None:
    async with launcher.workers(TARGET) as workers:
        task = await draining.never.submit()
        await began(task)
        await task.cancel()

        async def has_stopped() -> bool:
            return (await store.stats()).used_capacity == 0

        await wait_until(has_stopped)
        assert await (await draining.pid.submit()).result(timeout=30)
        assert await workers.end() == 0


async def test_when_a_process_is_killed_its_task_is_run_by_the_next(
    fl: Fairlead, launcher: WorkerLauncher, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with launcher.workers(TARGET) as workers:
        task = await draining.until.submit(str(go))
        await began(task)
        (child,) = workers.children()
        os.kill(child, signal.SIGKILL)
        go.touch()
        assert await task.result(timeout=40) == "done"
        assert (await task.get()).crash_count == 1
        assert await workers.end() == 0


async def test_answers_that_are_lost_lose_no_task_and_run_none_twice(gateway: Gateway, store: Store) -> None:
    async with losing_answers(gateway.url, every=5) as url:
        fl = Fairlead(url)
        runs: Counter[int] = Counter()

        @fl.task
        async def count(n: int, ctx: Context) -> int:
            runs[n] += 1
            ctx.emit(n)
            return n

        tasks = [count.new(n=n) for n in range(60)]
        await store.submit(*tasks)
        async with fl, fl.worker(capacity=4):
            await wait_until(lambda: nothing_is_left(store), 50)
    assert runs == Counter(range(60))
    for n, task in enumerate(tasks):
        assert (await store.get(task.task_id)).result == n
        assert [output.chunk for output in await store.outputs(task.task_id)] == [n]


@contextlib.contextmanager
def gateway_at(port: int, engine: str, namespace: str, folder: Path) -> Iterator[Gateway]:
    with serving(engine, namespace, folder, env=QUICK, port=port) as gateway:
        yield gateway


@pytest.mark.timeout(120)
async def test_a_restarted_gateway_finds_its_workers_at_work(server: Server, tmp_path: Path) -> None:
    namespace = f"restart-{os.getpid()}-{os.urandom(4).hex()}"
    folder = tmp_path / "gateway"
    folder.mkdir()
    go = tmp_path / "go"
    async with contextlib.AsyncExitStack() as stack:
        port = stack.enter_context(kept_port())  # also while no gateway listens there
        url = f"http://127.0.0.1:{port}"
        launcher = WorkerLauncher(tmp_path, lambda: ("--url", url))
        client = await stack.enter_async_context(client_of(url))
        with gateway_at(port, server.url, namespace, folder):
            workers = await stack.enter_async_context(launcher.workers(TARGET, "--capacity", "4"))
            async with patient_store(server.url, namespace) as store:
                held = NewTask(task_type="until", parameters={"path": str(go)})
                await store.submit(held, *(NewTask(task_type="pid") for _ in range(200)))
                await wait_until(lambda: is_in(store, held.task_id, State.EXECUTING))
            handle = TaskHandle[str](client, Submitted(held.task_id, State.EXECUTING))
            waiting = asyncio.create_task(handle.result(timeout=60))
        go.touch()  # while nobody listens; the lease outlasts it
        with gateway_at(port, server.url, namespace, folder):
            async with patient_store(server.url, namespace) as store:
                await store.submit(*(NewTask(task_type="pid") for _ in range(100)))
                await wait_until(lambda: nothing_is_left(store), 60, "all have ended")
                assert await waiting == "done"
                assert (await store.stats()).ended_last_minute["completed"] == 301
                assert await workers.end() == 0
                assert await examine(store.connection) == []


async def is_in(store: Store, task_id: str, state: State) -> bool:
    return (await store.get(task_id)).status is state


async def nothing_is_left(store: Store) -> bool:
    stats = await store.stats()
    return not (any(queue.depth for queue in stats.queues.values()) or stats.used_capacity or stats.delayed)


async def test_without_a_gateway_it_reports_that_and_ends(tmp_path: Path) -> None:
    with unreachable_url() as url:
        workers = WorkerLauncher(tmp_path, lambda: ("--url", url)).start(TARGET)
        assert await workers.exit_code() == 3
    assert "is it running" in workers.log_text()
