"""`task.session()`: the client's side of an interactive task, on the store itself and through a gateway."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

import pytest

from fairlead import AlreadyFinished, Fairlead, TaskCancelled
from fairlead.app.handle import TaskHandle
from fairlead.errors import InvalidInput, NoCapacity, NotInteractive, SessionTaken
from fairlead.model.reports import Completed, Grant
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.store.store import Store
from tests.api.serving import Gateway
from tests.client.conftest import QUICK, client_of
from tests.shouting import shouting
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return QUICK | {"FAIRLEAD_TIERS__FAST": "{ seconds = 30 }"}


@pytest.fixture(params=["store", "gateway"])
async def fl(request: pytest.FixtureRequest, gateway: Gateway, store: Store) -> AsyncIterator[Fairlead]:
    direct = request.param == "store"
    app = Fairlead(gateway.engine, namespace=gateway.namespace) if direct else Fairlead(gateway.url)
    async with app:
        yield app


async def started(fl: Fairlead) -> TaskHandle[object]:
    task = await fl.submit("shell", duration="interactive")
    assert task.status is State.EXECUTING
    return task


async def is_free(store: Store) -> bool:
    return [worker.running for worker in (await store.stats()).workers] == [0]


async def test_frames_go_both_ways_until_the_handler_returns(fl: Fairlead, store: Store) -> None:
    async with shouting(store):
        task = await started(fl)
        async with task.session() as session:
            await session.send("one")
            assert await anext(session) == "ONE"
            with contextlib.suppress(TimeoutError):  # waiting can be cancelled, and repeated
                await asyncio.wait_for(anext(session), 0.05)
            for frame in ("two", "three", "bye"):
                await session.send(frame)
            assert [frame async for frame in session] == ["TWO", "THREE"]
            with pytest.raises(AlreadyFinished):
                await session.send("too late")
        assert await task.result(timeout=30) == 4


async def test_leaving_the_block_ends_the_task(fl: Fairlead, store: Store) -> None:
    async with shouting(store):
        task = await started(fl)
        async with task.session() as session:
            await session.send("one")
            assert await anext(session) == "ONE"  # its worker has begun it
        assert (await task.get()).status is State.CANCELLED
        with pytest.raises(TaskCancelled, match=r"was cancelled\.$"):
            await task.result(timeout=30)
        await wait_until(lambda: is_free(store))


async def test_a_halted_session_ends_its_iteration(fl: Fairlead, store: Store) -> None:
    async with shouting(store):
        task = await started(fl)
        async with task.session() as session:
            await session.send("one")
            assert await anext(session) == "ONE"
            other = await fl.submit("other")
            assert [frame async for frame in session] == []
        with pytest.raises(TaskCancelled, match=r"HALTED.*needed the slot"):
            await task.result(timeout=30)
        await wait_until(lambda: is_started(other))


async def is_started(task: TaskHandle[object]) -> bool:
    return (await task.get()).status is State.EXECUTING


async def test_what_is_refused(fl: Fairlead, store: Store) -> None:
    with pytest.raises(NoCapacity):
        await fl.submit("shell", duration="interactive")
    with pytest.raises(InvalidInput, match=r"max_retries: an interactive task .* omit it"):
        await fl.submit("shell", duration="interactive", max_retries=1)
    with pytest.raises(InvalidInput, match=r"limits\.tier:fast: .* give the duration 'fast' instead"):
        await fl.submit("shell", limits={"tier:fast": 1})
    other = await fl.submit("other")
    with pytest.raises(NotInteractive):
        async with other.session():
            pass
    assert (await other.get()).status is State.QUEUED
    await other.cancel()
    async with shouting(store):
        task = await started(fl)
        async with task.session() as session:
            with pytest.raises(SessionTaken):
                async with task.session():
                    pass
            with pytest.raises(InvalidInput, match=r"^frame: is 65538 bytes"):
                await session.send("x" * 65_536)
            await session.send("still here")
            assert await anext(session) == "STILL HERE"


async def test_a_worker_through_a_gateway_takes_frames_and_confirms(gateway: Gateway, store: Store) -> None:
    async with client_of(gateway.url) as client:
        await client.workers.register("w", capacity=1)
        assert (await client.report("w", claim=1, idle=True))[1].tasks == []
        async with Fairlead(gateway.engine, namespace=gateway.namespace) as fl:
            task = await started(fl)
        (polled,) = (await client.report("w", claim=1))[1].tasks
        assert (polled.task_id, polled.interactive, polled.bounded) == (task.task_id, True, False)
        grant = Grant(task.task_id, polled.fence)
        assert [await client.send_frame(task.task_id, frame) for frame in ("a", None)] == [1, 2]
        assert [frame.frame for frame in await client.take_frames("w", grant)] == ["a", None]
        assert await client.take_frames("w", grant, 2) == []
        fenced, unknown = await client.shortened("w", Grant(grant.id, polled.fence + 1), Grant("x", 1))
        assert [type(one).__name__ for one in (fenced, unknown)] == ["Fenced", "UnknownTask"]
        assert await client.shortened("w", grant) == [None]
        report = Completed(task.task_id, polled.fence, "part", truncated=True)
        await client.report("w", completed=[report])
        ended = await client.get(task.task_id)
        assert (ended.result, ended.truncated, ended.tier) == ("part", True, None)


async def test_a_task_shows_its_tier(fl: Fairlead, store: Store) -> None:
    await store.workers.register("w", capacity=1)
    task = await fl.submit("draw", duration="fast")
    await store.claim("w")
    shown: Task = await task.get()
    assert (shown.duration, shown.tier, [one.reason for one in shown.tiers]) == ("fast", "fast", ["started"])
    assert shown.deadline == (shown.started_at or 0) + 30_000
    await store.complete("w", Completed(task.task_id))
