"""Reports of handlers reach the store in order, whatever happens on the way."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead import Context, Fairlead, errors
from fairlead.clock import monotonic
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from fairlead.testing import check
from fairlead.worker.context import HandlerMessage
from fairlead.worker.handler import Handler
from fairlead.worker.progress import ProgressBuffer
from fairlead.worker.run import Run
from tests.faults.wire import wire
from tests.servers import Server, running


@pytest.fixture
async def run(live_store: Store) -> Run:
    """A task in the hands of worker `w`."""

    async def nothing() -> None: ...

    await live_store.workers.register("w")
    await live_store.submit_one(NewTask(task_type="draw"))
    (task,) = (await live_store.claim("w")).tasks
    return Run(task, Handler("draw", nothing, "loop"), 0.0, 0.0)


@pytest.fixture
async def far_store(live_store: Store, tmp_path: Path) -> AsyncIterator[Store]:
    """The same store at the end of a wire, which a test has to lay."""
    namespace = live_store.connection.keys.namespace
    far = Store.connect(f"unix://{tmp_path}/wire", namespace, live_store.settings)
    yield far
    await far.close()


async def test_reports_during_an_outage_of_the_store_are_sent_afterwards_in_order(
    live_store: Store, far_store: Store, run: Run, server: Server, tmp_path: Path
) -> None:
    buffer = ProgressBuffer()
    buffer.add(run, HandlerMessage("output", 1))
    buffer.add(run, HandlerMessage("progress", 0.1, "began"))
    sending = asyncio.create_task(buffer.send(far_store, "w"))
    await asyncio.sleep(0)
    buffer.add(run, HandlerMessage("output", 2))
    buffer.add(run, HandlerMessage("progress", 0.2, "continued"))
    with pytest.raises(errors.StoreUnavailable):
        await sending
    buffer.add(run, HandlerMessage("output", 3))
    async with wire(server.url, tmp_path):
        await buffer.send(far_store, "w")
        task = await live_store.get(run.task.task_id)
        assert task.progress and task.progress.message == "continued"
        assert [output.chunk for output in await live_store.outputs(task.task_id)] == [1, 2, 3]
        assert not buffer


async def test_an_extension_is_reported_once_although_the_rest_had_to_be_repeated(
    far_store: Store, run: Run, server: Server, tmp_path: Path
) -> None:
    extended: list[int] = []
    run.inform = lambda deadline_ms, _: extended.append(deadline_ms)
    run.set_deadline(monotonic() + 30)
    buffer = ProgressBuffer()
    buffer.add(run, HandlerMessage("extend", 1000.0))
    buffer.add(run, HandlerMessage("output", 1))
    async with wire(server.url, tmp_path) as (line, _):
        line.lose_reply = lambda request: bool(extended)
        with pytest.raises(errors.StoreUnavailable):
            await buffer.send(far_store, "w")
        assert len(extended) == 1
        line.lose_reply = lambda request: False
        await buffer.send(far_store, "w")
    assert len(extended) == 1
    run.end()


async def test_a_full_store_takes_no_output_but_results() -> None:
    with running("valkey", "--maxmemory", "12mb", "--maxmemory-policy", "noeviction") as server:
        fl = Fairlead(server.url, namespace="full")
        full, chatters = asyncio.Event(), asyncio.Event()

        @fl.task
        async def chatter(ctx: Context) -> str:
            chatters.set()
            await full.wait()
            ctx.emit("x" * 50_000)
            return "done"

        async with fl, fl.worker():
            task = await chatter.submit()
            await chatters.wait()
            for size in (50_000, 100):  # completely full: no room is left for an output of this size
                with pytest.raises(errors.StoreFull):
                    while True:
                        await fl.store.submit_one(NewTask(task_type="x", parameters={"text": "x" * size}))
            full.set()
            ended = await task.wait(timeout=30)
            assert (ended.status, ended.result) == (State.COMPLETED, "done")
            assert await fl.store.outputs(task.task_id) == []
            assert await check(fl) == []
