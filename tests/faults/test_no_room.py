"""The system has no room for another process: running work continues, the rest starts when there is room."""

import os
import resource
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from fairlead import Fairlead
from fairlead.model.states import State
from fairlead.store.store import Store
from fairlead.worker.threads import Threads
from tests.api.serving import serving
from tests.apps import draining
from tests.servers import Server
from tests.waiting import wait_until
from tests.workers import WorkerLauncher

TARGET = "tests.apps.draining:fl"


@contextmanager
def without_files(pid: int) -> Iterator[None]:
    """Starting a process needs files (and so fails, as it does when there is no room for a process)."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def launcher(live_store: Store, server: Server, tmp_path: Path) -> WorkerLauncher:
    namespace = live_store.connection.keys.namespace
    return WorkerLauncher(tmp_path, lambda: ("--engine", server.url, "--namespace", namespace))


@pytest.fixture
async def fl(live_store: Store, server: Server) -> AsyncIterator[Fairlead]:
    """The app of the worker processes, here only to submit."""
    place = draining.fl.target
    draining.fl.target = Fairlead(server.url, namespace=live_store.connection.keys.namespace).target
    async with draining.fl as fl:
        yield fl
    fl.target = place


async def test_the_other_workers_continue_when_a_dead_one_cannot_be_replaced(
    fl: Fairlead, launcher: WorkerLauncher, tmp_path: Path
) -> None:
    async with launcher.workers(TARGET, "--processes", "2", "--capacity", "1", ready=2) as workers:
        go = tmp_path / "go"
        running = await draining.until.submit(str(go))

        async def runs() -> bool:
            return (await running.get()).status is State.EXECUTING

        await wait_until(runs)
        holder = (await running.get()).assigned_worker_id
        pids = {await (await draining.pid.submit()).result(timeout=30)}
        with without_files(workers.process.pid):
            os.kill(pids.pop(), signal.SIGKILL)
            await wait_until(lambda: workers.log_text().count("worker_not_started") > 1, 40)
            assert workers.process.returncode is None
        await workers.ready(3)
        go.touch()
        assert await running.result(timeout=30) == "done"
        ended = await running.get()
        assert (ended.assigned_worker_id, ended.attempt) == (holder, 1)
        assert await workers.end() == 0


async def test_a_worker_that_cannot_be_started_does_not_keep_the_command_from_ending(
    launcher: WorkerLauncher,
) -> None:
    async with launcher.workers(TARGET) as workers:
        (pid,) = workers.children()
        with without_files(workers.process.pid):
            os.kill(pid, signal.SIGKILL)
            await wait_until(lambda: "worker_not_started" in workers.log_text(), 40)
            assert await workers.end() == 0


async def test_a_task_waits_for_its_process_and_is_not_charged(
    fl: Fairlead, launcher: WorkerLauncher, tmp_path: Path
) -> None:
    async with launcher.workers(TARGET, "--capacity", "2") as workers:
        (pid,) = workers.children()
        assert await (await draining.pid.submit()).result(timeout=30) == pid  # its connections are open
        go = tmp_path / "go"
        go.touch()
        with without_files(pid):
            task = await draining.until_in_process.submit(str(go))
            await wait_until(lambda: workers.log_text().count("handler_process_not_started") > 1, 40)
            assert await (await draining.pid.submit()).result(timeout=30) == pid, "others run"
        assert await task.result(timeout=30) == "done"
        ended = await task.get()
        assert (ended.attempt, ended.retry_count, ended.crash_count) == (1, 0, 0)
        assert await workers.end() == 0


async def test_the_other_servers_continue_when_a_dead_one_cannot_be_replaced(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    where = server.url, live_store.connection.keys.namespace, tmp_path
    with serving(*where, "--processes", "2") as gateway:
        await wait_until(lambda: len(gateway.children()) == 2)
        with without_files(gateway.process.pid):
            os.kill(gateway.children()[0], signal.SIGKILL)
            await wait_until(lambda: gateway.log_text().count("server_not_started") > 1, 40)
            async with httpx.AsyncClient(trust_env=False) as client:
                assert (await client.get(f"{gateway.url}/healthz", timeout=30)).status_code == 200
        await wait_until(lambda: len(gateway.children()) == 2, 40)


async def test_a_call_waits_for_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = threading.Thread.start
    refused: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if len(refused) < 2:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        starts(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    threads = Threads()
    call = await threads.start(lambda: 7)
    assert await call.result == 7
    assert len(refused) == 2
    threads.done()
    threads.close()
