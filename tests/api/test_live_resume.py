"""A client that reconnects: after its connection broke, on another server, or after the store was down."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fairlead.model.reports import Completed, Progress
from fairlead.model.task import NewTask, Task
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.listening import (
    Message,
    claim,
    numbers,
    receive,
    receive_all,
    receive_one,
    socket,
    stream,
    types,
)
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
    """The first messages to a client that knows the messages up to this number, from each."""
    async with socket(gateway, f"/ws/{task_id}?after={after}") as opened:
        by_socket = await receive(opened, count)
    async with stream(gateway, task_id, after) as events:
        by_query = [await anext(events) for _ in range(count)]
    async with stream(gateway, task_id, last_event_id=str(after)) as events:
        by_header = [await anext(events) for _ in range(count)]
    return [by_socket, by_query, by_header]


async def test_output_that_was_missed_comes_first_then_the_state(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    await emit(store, task, "a", "b", "c")  # 3, 4, 5
    for received in await resumed(gateway, task.task_id, 3, 3):
        assert types(received) == ["OUTPUT", "OUTPUT", "STEP_START"]
        assert [message.get("chunk") for message in received] == ["b", "c", None]
        assert numbers(received) == [4, 5, 5]
    for received in await resumed(gateway, task.task_id, 0, 4):
        assert numbers(received) == [3, 4, 5, 5]


async def test_changes_in_between_are_folded_into_the_state(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    await emit(store, task, "a")
    await store.complete("w", Completed(task.task_id, task.fence, 1))
    for received in await resumed(gateway, task.task_id, 1, 2):
        assert (types(received), numbers(received)) == (["OUTPUT", "JOB_COMPLETE"], [3, 4])


async def test_when_nothing_has_changed_nothing_is_sent(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    async with (
        socket(gateway, f"/ws/{task.task_id}?after=2") as opened,
        stream(gateway, task.task_id, 2) as events,
    ):
        await emit(store, task, "next")
        assert (await receive_one(opened))["chunk"] == "next"
        assert (await anext(events))["chunk"] == "next"


async def test_a_client_that_knows_the_end_is_disconnected(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    await store.cancel(task.task_id)
    async with socket(gateway, f"/ws/{task.task_id}?after=3") as opened:
        assert await receive_all(opened) == ([], 1000)
    async with httpx.AsyncClient(base_url=gateway.url) as client:
        answer = await client.get(
            f"/api/v1/tasks/{task.task_id}/events", headers={"last-event-id": "3"}, timeout=30
        )
    assert (answer.status_code, answer.content) == (204, b"")  # an event source does not reconnect


async def test_a_number_that_was_never_sent_returns_the_state(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    for received in await resumed(gateway, task.task_id, 99, 1):
        assert (types(received), numbers(received)) == (["STEP_START"], [2])


async def test_on_another_server_of_the_same_store(live_store: Store, server: Server, tmp_path: Path) -> None:
    where = server.url, live_store.connection.keys.namespace, tmp_path
    with serving(*where) as one, serving(*where) as two:
        task = await running(live_store)
        async with socket(one, f"/ws/{task.task_id}") as opened:
            assert (await receive_one(opened))["seq"] == 2
            await emit(live_store, task, "a")
            assert (await receive_one(opened))["seq"] == 3
        await emit(live_store, task, "b")
        async with socket(two, f"/ws/{task.task_id}?after=3") as opened:
            missed, state = await receive(opened, 2)
            assert (missed["chunk"], state["type"]) == ("b", "STEP_START")
            await emit(live_store, task, "c")
            assert (await receive_one(opened))["chunk"] == "c"


async def test_every_server_of_a_store_sends_the_same(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    where = server.url, live_store.connection.keys.namespace, tmp_path
    with serving(*where, "--processes", "2") as gateway:
        await wait_until(lambda: len(gateway.children()) == 2)
        task = await running(live_store)
        many = [socket(gateway, f"/ws/{task.task_id}") for _ in range(8)]  # some on each process
        opened = [await one.__aenter__() for one in many]
        assert numbers([await receive_one(one) for one in opened]) == [2] * 8
        await live_store.complete("w", Completed(task.task_id, task.fence, "done"))
        ends = await asyncio.gather(*map(receive_all, opened))
        assert [(received[0]["result"], code) for received, code in ends] == [("done", 1000)] * 8
        for one in many:
            await one.__aexit__(None, None, None)


class TestWhenTheStoreIsAway:
    @pytest.fixture
    async def server(self) -> AsyncIterator[Durable]:
        with durable() as server:
            await server.start()
            yield server

    async def test_the_client_receives_the_state_when_the_store_is_back(
        self, server: Durable, tmp_path: Path
    ) -> None:
        with serving(server.url, "default", tmp_path) as gateway:
            async with Store.connect(server.url) as store:
                task = await running(store)
                async with (
                    socket(gateway, f"/ws/{task.task_id}") as opened,
                    stream(gateway, task.task_id, 2) as events,
                ):
                    await receive_one(opened)
                    await emit(store, task, "before")
                    assert (await receive_one(opened))["chunk"] == (await anext(events))["chunk"] == "before"
                    server.kill()
                    await server.start()
                    await store.open()
                    await emit(store, task, "a", "b")
                    await store.complete("w", Completed(task.task_id, task.fence, "after"))
                    by_socket, code = await receive_all(opened)
                    by_stream = [message async for message in events]
                for received in (by_socket, by_stream):
                    chunks = [message["chunk"] for message in received if message["type"] == "OUTPUT"]
                    assert chunks == ["a", "b"]
                    assert (received[-1]["type"], received[-1]["result"]) == ("JOB_COMPLETE", "after")
                    assert numbers(received) == sorted(numbers(received))
                assert code == 1000
                assert not await examine(store.connection)
