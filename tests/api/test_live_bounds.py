"""What live updates may cost: connections of a key, readers that do not read, and a server that stops."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from fairlead.model.reports import Completed, Progress
from fairlead.model.task import NewTask, Task
from fairlead.store.store import Store
from tests.api.listening import claim, receive_all, receive_one, refused_socket, socket, stream
from tests.api.requests import TASKS, good, refused
from tests.api.serving import Gateway, serving
from tests.servers import Server
from tests.waiting import wait_until

MOST = 5
MIB = 1024 * 1024

T = TypeVar("T")


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__WRITE_SECONDS": "3", "FAIRLEAD_SERVER__LIVE_PER_KEY": str(MOST)}


async def running(store: Store) -> Task:
    await store.submit_one(NewTask(task_type="echo"))
    return await claim(store)


def memory(pid: int) -> int:
    """Bytes the process has in memory."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


async def emit_much(store: Store, task: Task) -> None:
    """12 MiB in chunks of 60 KB: more than the lines to any reader hold."""
    for _ in range(20):
        assert await store.progress("w", Progress(task.task_id, task.fence, chunks=["x" * 60_000] * 10)) == [
            None
        ]


@contextlib.asynccontextmanager
async def in_time(
    way: Callable[..., AbstractAsyncContextManager[T]], *where: Any, **options: Any
) -> AsyncIterator[T]:
    """As soon as there is room: a client of the previous test counts until the server notices its end."""
    async with contextlib.AsyncExitStack() as stack:
        opened: list[T] = []

        async def is_open() -> bool:
            with contextlib.suppress(InvalidStatus, AssertionError):  # a socket, a stream that is refused
                opened.append(await stack.enter_async_context(way(*where, **options)))
            return bool(opened)

        await wait_until(is_open)
        yield opened[0]


async def there_is_room(gateway: Gateway, path: str) -> bool:
    """For one more connection."""
    with contextlib.suppress(InvalidStatus):
        async with socket(gateway, path) as another:
            return bool(await receive_one(another))
    return False


async def test_the_connections_of_a_key_are_bounded(
    gateway: Gateway, store: Store, api: httpx.AsyncClient
) -> None:
    task = await running(store)
    path = f"/ws/{task.task_id}"
    async with contextlib.AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(in_time(socket, gateway, path)) for _ in range(MOST - 1)]
        await stack.enter_async_context(in_time(stream, gateway, task.task_id))
        status, problem = await refused_socket(gateway, path)
        assert (status, problem["code"]) == (429, "too_many_connections")
        refused(await api.get(f"{TASKS}/{task.task_id}/events"), 429, "too_many_connections")
        good(await api.get(f"{TASKS}/{task.task_id}"))  # other requests are served
        await opened[0].close()
        await wait_until(lambda: there_is_room(gateway, path))


@pytest.fixture
async def quiet(gateway: Gateway, store: Store) -> AsyncIterator[str]:
    """The address of a waiting task, with so few connections left that there is room for one more."""
    submitted = await store.submit_one(NewTask(task_type="other", required_capabilities=("none",)))
    path = f"/ws/{submitted.task_id}"
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(MOST - 1):
            await stack.enter_async_context(in_time(socket, gateway, path))
        yield path


async def test_a_socket_that_is_not_read_is_cut_off(gateway: Gateway, store: Store, quiet: str) -> None:
    task = await running(store)
    async with in_time(socket, gateway, f"/ws/{task.task_id}", max_queue=1) as slow:
        await receive_one(slow)
        slow.transport.pause_reading()
        await emit_much(store, task)
        await wait_until(lambda: there_is_room(gateway, quiet), 40, "it is cut off")
        slow.transport.resume_reading()
        received, code = await receive_all(slow)  # a client that reads after all gets the reason
    assert code == 1013
    last = received[-1]["seq"]
    async with in_time(socket, gateway, f"/ws/{task.task_id}?after={last}") as again:
        assert (await receive_one(again))["seq"] == last + 1  # and continues where it was


def say_goodbye(slow: ClientConnection) -> None:
    """And do not wait for the answer, which would not be read."""
    slow.protocol.send_close(1000)
    slow.transport.write(b"".join(slow.protocol.data_to_send()))


async def test_a_socket_that_is_closed_but_not_read_is_cut_off(
    gateway: Gateway, store: Store, quiet: str
) -> None:
    task = await running(store)
    async with in_time(socket, gateway, f"/ws/{task.task_id}", max_queue=1, close_timeout=0.1) as slow:
        await receive_one(slow)
        slow.transport.pause_reading()
        await emit_much(store, task)
        say_goodbye(slow)
        await wait_until(lambda: there_is_room(gateway, quiet), 40, "it is cut off")
        await is_cut_off(gateway, slow.local_address[1])
    assert "InvalidState" not in gateway.log_text()


async def test_messages_that_a_client_does_not_read_are_not_kept_for_it(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    """While the test waits for it: ten times as much as it may leave unread."""
    env = {"FAIRLEAD_SERVER__WRITE_SECONDS": "60"}
    with serving(server.url, live_store.connection.keys.namespace, tmp_path, env=env) as gateway:
        task = await running(live_store)
        async with socket(gateway, f"/ws/{task.task_id}", max_queue=1) as slow:
            await receive_one(slow)
            slow.transport.pause_reading()
            await emit_much(live_store, task)  # until the line is full
            before = memory(gateway.process.pid)
            grown = 0
            for _ in range(10):
                await emit_much(live_store, task)
                grown = max(grown, memory(gateway.process.pid) - before)
            slow.transport.abort()
    assert grown < 30 * MIB


async def test_other_clients_that_read_receive_everything(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    async with (
        in_time(socket, gateway, f"/ws/{task.task_id}", max_queue=1) as slow,
        in_time(socket, gateway, f"/ws/{task.task_id}") as quick,
    ):
        await asyncio.gather(receive_one(slow), receive_one(quick))
        slow.transport.pause_reading()
        reading = asyncio.create_task(receive_all(quick))
        await emit_much(store, task)
        await store.complete("w", Completed(task.task_id, task.fence))
        received, code = await reading
        slow.transport.abort()
    assert (received[-1]["type"], code) == ("JOB_COMPLETE", 1000)
    assert sum(message["type"] == "OUTPUT" for message in received) == 200


async def test_a_stream_that_is_not_read_is_cut_off(gateway: Gateway, store: Store) -> None:
    task = await running(store)
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port, limit=1024)
    writer.write(f"GET {TASKS}/{task.task_id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert b" 200 " in await reader.readline()
    port = writer.get_extra_info("sockname")[1]
    await emit_much(store, task)  # the reader takes no more than it may keep
    await is_cut_off(gateway, port)
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_quiet_stream_shows_that_it_is_there(gateway: Gateway, store: Store) -> None:
    submitted = await store.submit_one(NewTask(task_type="echo"))
    path = f"{TASKS}/{submitted.task_id}/events"
    async with (
        httpx.AsyncClient(base_url=gateway.url, timeout=40) as client,
        client.stream("GET", path) as answer,
    ):
        lines = [line async for line in until_a_comment(answer)]
    assert [line for line in lines if line.startswith("event")] == ["event: QUEUED"]
    assert lines[-1] == ": still here"


async def until_a_comment(answer: httpx.Response) -> AsyncIterator[str]:
    async for line in answer.aiter_lines():
        yield line
        if line.startswith(":"):
            return


async def is_cut_off(gateway: Gateway, port: int) -> None:
    """The server has dropped the connection from this local port."""
    pattern = re.compile(rf"^ *\d+: \w+:{gateway.port:04X} \w+:{port:04X} 01 ", re.M)  # 01: established
    await wait_until(lambda: not pattern.search(Path("/proc/net/tcp").read_text()), 30, "it is cut off")


async def test_a_stopping_server_sends_the_close_code(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    with serving(server.url, live_store.connection.keys.namespace, tmp_path) as gateway:
        task = await running(live_store)
        async with (
            socket(gateway, f"/ws/{task.task_id}") as one,
            socket(gateway, "/ws/tasks") as two,
            stream(gateway, task.task_id) as events,
        ):
            await receive_one(one)
            await anext(events)
            gateway.process.terminate()
            assert [code for _, code in await asyncio.gather(receive_all(one), receive_all(two))] == [
                1012,
                1012,
            ]
            assert [message async for message in events] == []
        await gateway.ended()


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
async def test_a_server_stops_also_when_nobody_reads(
    live_store: Store, server: Server, tmp_path: Path, closed: bool
) -> None:
    with serving(server.url, live_store.connection.keys.namespace, tmp_path) as gateway:
        task = await running(live_store)
        async with socket(gateway, f"/ws/{task.task_id}", max_queue=1, close_timeout=0.1) as slow:
            await receive_one(slow)
            slow.transport.pause_reading()
            await emit_much(live_store, task)
            if closed:
                say_goodbye(slow)
            gateway.process.terminate()
            assert await gateway.ended() == 0
            slow.transport.abort()


async def test_two_hundred_at_once(live_store: Store, server: Server, tmp_path: Path) -> None:
    namespace = live_store.connection.keys.namespace
    tasks = [NewTask(task_type="echo", parameters={"n": n}) for n in range(200)]
    await live_store.submit(*tasks)
    await live_store.workers.register("w", capacity=200)
    with serving(server.url, namespace, tmp_path) as gateway:
        async with contextlib.AsyncExitStack() as stack:
            opened = await asyncio.gather(
                *(stack.enter_async_context(socket(gateway, f"/ws/{task.task_id}")) for task in tasks)
            )
            await asyncio.gather(*map(receive_one, opened))
            claimed = [task for _ in range(2) for task in (await live_store.claim("w", 200)).tasks]
            done = [Completed(task.task_id, task.fence, task.parameters["n"]) for task in claimed]
            await live_store.complete("w", *done)
            ends = await asyncio.gather(*map(receive_all, opened))
    assert [received[-1]["result"] for received, _ in ends] == list(range(200))
    assert {code for _, code in ends} == {1000}
    assert all([message["seq"] for message in received] == [2, 3] for received, _ in ends)
