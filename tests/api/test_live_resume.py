"""A client that comes back: after its own line broke, on another server, or after the store was away."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fairlead.model.reports import Completed, Progress
from fairlead.model.task import NewTask, Task
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.listening import Message, claim, hear, hear_all, hear_one, numbers, socket, stream, types
from tests.api.serving import Gateway, serving
from tests.faults.restarts import Durable, durable
from tests.servers import Server
from tests.waiting import wait_until


async def running(store: Store) -> Task:
    await store.submit_one(NewTask(task_type="echo"))
    return await claim(store)


async def emit(store: Store, task: Task, *chunks: object) -> None:
    assert await store.progress("w", Progress(task.task_id, task.fence, chunks=chunks)) == [None]


async def resumed(gateway: Gateway, task_id: str, after: int, count: int) -> list[list[Message]]:
    """What comes first to a client that knows so much, by each way."""
    async with socket(gateway, f"/ws/{task_id}?after={after}") as opened:
        by_socket = await hear(opened, count)
    async with stream(gateway, task_id, after) as events:
        by_query = [await anext(events) for _ in range(count)]
    async with stream(gateway, task_id, last_event_id=str(after)) as events:
        by_header = [await anext(events) for _ in range(count)]
    return [by_socket, by_query, by_header]


async def test_output_that_was_missed_comes_first_then_the_state(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    await emit(store, task, "a", "b", "c")  # 3, 4, 5
    for heard in await resumed(gateway, task.task_id, 3, 3):
        assert types(heard) == ["OUTPUT", "OUTPUT", "STEP_START"]
        assert [message.get("chunk") for message in heard] == ["b", "c", None]
        assert numbers(heard) == [4, 5, 5]
    for heard in await resumed(gateway, task.task_id, 0, 4):
        assert numbers(heard) == [3, 4, 5, 5]


async def test_what_changed_meanwhile_is_folded_into_the_state(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    await emit(store, task, "a")
    await store.complete("w", Completed(task.task_id, task.fence, 1))
    for heard in await resumed(gateway, task.task_id, 1, 2):
        assert (types(heard), numbers(heard)) == (["OUTPUT", "JOB_COMPLETE"], [3, 4])


async def test_when_nothing_has_changed_nothing_is_told(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    async with (
        socket(gateway, f"/ws/{task.task_id}?after=2") as opened,
        stream(gateway, task.task_id, 2) as events,
    ):
        await emit(store, task, "next")
        assert (await hear_one(opened))["chunk"] == "next"
        assert (await anext(events))["chunk"] == "next"


async def test_who_knows_the_end_is_sent_away(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    await store.cancel(task.task_id)
    async with socket(gateway, f"/ws/{task.task_id}?after=3") as opened:
        assert await hear_all(opened) == ([], 1000)
    async with httpx.AsyncClient(base_url=gateway.url) as client:
        answer = await client.get(
            f"/api/v1/tasks/{task.task_id}/events", headers={"last-event-id": "3"}, timeout=30
        )
    assert (answer.status_code, answer.content) == (204, b"")  # an event source comes back no more


async def test_a_number_that_was_never_told_brings_the_state(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    for heard in await resumed(gateway, task.task_id, 99, 1):
        assert (types(heard), numbers(heard)) == (["STEP_START"], [2])


async def test_on_another_server_of_the_same_store(live_store: Store, server: Server, tmp_path: Path) -> None:
    where = server.url, live_store.connection.keys.namespace, tmp_path
    with serving(*where) as one, serving(*where) as two:
        task = await running(live_store)
        async with socket(one, f"/ws/{task.task_id}") as opened:
            assert (await hear_one(opened))["seq"] == 2
            await emit(live_store, task, "a")
            assert (await hear_one(opened))["seq"] == 3
        await emit(live_store, task, "b")
        async with socket(two, f"/ws/{task.task_id}?after=3") as opened:
            missed, state = await hear(opened, 2)
            assert (missed["chunk"], state["type"]) == ("b", "STEP_START")
            await emit(live_store, task, "c")
            assert (await hear_one(opened))["chunk"] == "c"


async def test_every_server_of_a_store_tells_the_same(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    where = server.url, live_store.connection.keys.namespace, tmp_path
    with serving(*where, "--processes", "2") as gateway:
        await wait_until(lambda: len(gateway.children()) == 2)
        task = await running(live_store)
        many = [socket(gateway, f"/ws/{task.task_id}") for _ in range(8)]  # some on each process
        opened = [await one.__aenter__() for one in many]
        assert numbers([await hear_one(one) for one in opened]) == [2] * 8
        await live_store.complete("w", Completed(task.task_id, task.fence, "done"))
        ends = await asyncio.gather(*map(hear_all, opened))
        assert [(heard[0]["result"], code) for heard, code in ends] == [("done", 1000)] * 8
        for one in many:
            await one.__aexit__(None, None, None)


class TestWhenTheStoreIsAway:
    @pytest.fixture
    async def server(self) -> AsyncIterator[Durable]:
        with durable() as server:
            await server.start()
            yield server

    async def test_the_client_hears_the_state_when_it_is_back(self, server: Durable, tmp_path: Path) -> None:
        with serving(server.url, "default", tmp_path) as gateway:
            async with Store.connect(server.url) as store:
                task = await running(store)
                async with (
                    socket(gateway, f"/ws/{task.task_id}") as opened,
                    stream(gateway, task.task_id, 2) as events,
                ):
                    await hear_one(opened)
                    await emit(store, task, "before")
                    assert (await hear_one(opened))["chunk"] == (await anext(events))["chunk"] == "before"
                    server.kill()
                    await server.start()
                    await store.open()
                    await emit(store, task, "a", "b")
                    await store.complete("w", Completed(task.task_id, task.fence, "after"))
                    by_socket, code = await hear_all(opened)
                    by_stream = [message async for message in events]
                for heard in (by_socket, by_stream):
                    chunks = [message["chunk"] for message in heard if message["type"] == "OUTPUT"]
                    assert chunks == ["a", "b"]
                    assert (heard[-1]["type"], heard[-1]["result"]) == ("JOB_COMPLETE", "after")
                    assert numbers(heard) == sorted(numbers(heard))
                assert code == 1000
                assert not await examine(store.connection)
