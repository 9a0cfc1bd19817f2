"""A worker whose server goes away and comes back, with what it had."""

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


async def test_an_idle_worker_goes_on_when_its_server_is_back(fl: Fairlead, durable: Restartable) -> None:
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


async def test_what_ran_meanwhile_is_reported_and_who_waits_for_it_hears_it(
    fl: Fairlead, durable: Restartable, caplog: pytest.LogCaptureFixture
) -> None:
    running_now, go_on = asyncio.Event(), asyncio.Event()

    @fl.task
    async def long(ctx: Context) -> int:
        ctx.emit("began")
        running_now.set()
        await go_on.wait()
        ctx.emit("ended")
        return ctx.fence

    async with fl, fl.worker():
        task = await long.submit()
        await running_now.wait()
        heard: list[str] = []
        waiting = asyncio.create_task(task.result(timeout=30))
        watching = asyncio.create_task(hear(task, heard))
        await wait_until(lambda: heard == ["began"])
        durable.kill()
        go_on.set()
        await wait_until(lambda: "store_unavailable" in caplog.text, because="its report met nobody")
        durable.start()
        fence = await waiting
        ended = await task.get()
        assert (ended.status, ended.fence, ended.crash_count) == (State.COMPLETED, fence, 0), "it ran once"
        await watching
        assert heard == ["began", "ended"]


async def test_who_waits_for_a_job_goes_on_when_its_server_is_back(
    fl: Fairlead, durable: Restartable, caplog: pytest.LogCaptureFixture
) -> None:
    running_now, go_on = asyncio.Event(), asyncio.Event()

    @fl.task
    async def long() -> str:
        running_now.set()
        await go_on.wait()
        return "long"

    @fl.task
    async def short() -> str:
        return "short"

    fl.pipeline("both", [long, short])
    async with fl, fl.worker():
        job = await fl.submit_job("both")
        kinds: list[str] = []
        waiting = asyncio.create_task(job.result(timeout=40))
        watching = asyncio.create_task(hear_of(job, kinds))
        await running_now.wait()
        await wait_until(lambda: bool(kinds), because="who comes when the server is away is told so")
        durable.kill()
        go_on.set()
        await wait_until(lambda: "store_unavailable" in caplog.text, because="its report met nobody")
        durable.start()
        context = await waiting
        assert (context["step_0_long"]["data"], context["step_1_short"]["data"]) == ("long", "short")
        assert context["step_0_long__attempts"] == 1
        await watching
        assert (kinds.count("STEP_COMPLETE"), kinds[-1]) == (2, "JOB_COMPLETE")


async def hear_of(job: JobHandle, kinds: list[str]) -> None:
    async for message in job.watch():
        kinds.append(message["type"])


async def hear(task: TaskHandle[Any], heard: list[str]) -> None:
    async for event in task.watch():
        if event.act == "output":
            heard.append(event.detail["chunk"])


async def test_a_program_that_finds_no_server_says_so(durable: Restartable, config: Path) -> None:
    durable.kill()
    with pytest.raises(errors.StoreUnavailable):
        await Fairlead(durable.url, config=config).__aenter__()
    durable.start()
