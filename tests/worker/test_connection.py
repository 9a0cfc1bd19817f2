"""A worker whose server stops and returns with its data."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import Context, Fairlead, JobHandle, errors
from fairlead.app.handle import TaskHandle
from fairlead.model.states import State
from fairlead.testing import check
from tests.servers import Server, running
from tests.waiting import wait_until


class Restartable:
    """A server of our own, on one socket and one append-only file through all of its lives."""

    def __init__(self, server: Server) -> None:
        self.url = server.url
        self._process = server.process

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def start(self) -> None:
        self._process = subprocess.Popen(self._process.args, stdout=subprocess.DEVNULL)


@pytest.fixture
def durable() -> Iterator[Restartable]:
    with running("valkey", "--appendonly", "yes", "--appendfsync", "always") as server:
        restartable = Restartable(server)
        yield restartable
        restartable.kill()


@pytest.fixture
async def fl(durable: Restartable, config: Path) -> AsyncIterator[Fairlead]:
    fl = Fairlead(durable.url, config=config)
    yield fl
    async with fl:
        assert await check(fl) == []


async def answers(fl: Fairlead) -> bool:
    try:
        await fl.store.stats()
    except errors.StoreUnavailable:
        return False
    return True


async def test_an_idle_worker_resumes_when_its_server_is_back(fl: Fairlead, durable: Restartable) -> None:
    @fl.task
    async def echo(text: str) -> str:
        return text

    async with fl, fl.worker() as worker:
        assert await (await echo.submit("before")).result(timeout=30) == "before"
        durable.kill()
        with pytest.raises(errors.StoreUnavailable):
            await echo.submit("meanwhile")
        durable.start()
        await wait_until(lambda: answers(fl))
        task = await echo.submit("after")
        assert await task.result(timeout=30) == "after"
        assert (await task.get()).assigned_worker_id == worker.id


async def test_a_run_during_the_outage_is_reported_and_its_watcher_is_notified(
    fl: Fairlead, durable: Restartable, caplog: pytest.LogCaptureFixture
) -> None:
    running_now, resume = asyncio.Event(), asyncio.Event()

    @fl.task
    async def long(ctx: Context) -> int:
        ctx.emit("began")
        running_now.set()
        await resume.wait()
        ctx.emit("ended")
        return ctx.fence

    async with fl, fl.worker():
        task = await long.submit()
        await running_now.wait()
        chunks: list[str] = []
        waiting = asyncio.create_task(task.result(timeout=30))
        watching = asyncio.create_task(collect_chunks(task, chunks))
        await wait_until(lambda: chunks == ["began"])
        durable.kill()
        resume.set()
        await wait_until(lambda: "store_unavailable" in caplog.text, because="its report was not answered")
        durable.start()
        fence = await waiting
        ended = await task.get()
        assert (ended.status, ended.fence, ended.crash_count) == (State.COMPLETED, fence, 0), "it ran once"
        await watching
        assert chunks == ["began", "ended"]


async def test_a_wait_for_a_job_continues_when_its_server_is_back(
    fl: Fairlead, durable: Restartable, caplog: pytest.LogCaptureFixture
) -> None:
    running_now, resume = asyncio.Event(), asyncio.Event()

    @fl.task
    async def long() -> str:
        running_now.set()
        await resume.wait()
        return "long"

    @fl.task
    async def short() -> str:
        return "short"

    fl.pipeline("both", [long, short])
    async with fl, fl.worker():
        job = await fl.submit_job("both")
        kinds: list[str] = []
        waiting = asyncio.create_task(job.result(timeout=40))
        watching = asyncio.create_task(collect_kinds(job, kinds))
        await running_now.wait()
        await wait_until(lambda: bool(kinds), because="a watcher that starts during the outage is notified")
        durable.kill()
        resume.set()
        await wait_until(lambda: "store_unavailable" in caplog.text, because="its report was not answered")
        durable.start()
        context = await waiting
        assert (context["step_0_long"]["data"], context["step_1_short"]["data"]) == ("long", "short")
        assert context["step_0_long__attempts"] == 1
        await watching
        assert (kinds.count("STEP_COMPLETE"), kinds[-1]) == (2, "JOB_COMPLETE")


async def collect_kinds(job: JobHandle, kinds: list[str]) -> None:
    async for message in job.watch():
        kinds.append(message["type"])


async def collect_chunks(task: TaskHandle[Any], chunks: list[str]) -> None:
    async for message in task.watch():
        if message["type"] == "OUTPUT":
            chunks.append(message["chunk"])


async def test_a_program_without_a_server_reports_it(durable: Restartable, config: Path) -> None:
    durable.kill()
    with pytest.raises(errors.StoreUnavailable):
        await Fairlead(durable.url, config=config).__aenter__()
    durable.start()
