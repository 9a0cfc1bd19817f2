"""How many clients a server lets in, and what it does when the system has no more files for them."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.api.serving import Gateway, serving
from tests.api.test_abuse import memory_of, rest
from tests.servers import Server
from tests.waiting import wait_until

GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
MOST = 20


@contextlib.contextmanager
def served(store: Store, server: Server, folder: Path, **settings: object) -> Iterator[Gateway]:
    env = {f"FAIRLEAD_SERVER__{name.upper()}": str(value) for name, value in settings.items()}
    with serving(server.url, store.connection.keys.namespace, folder, env=env) as gateway:
        yield gateway


async def status(gateway: Gateway) -> int:
    """The status that a new client gets; 0: it is hung up without a word."""
    with contextlib.suppress(httpx.TransportError):
        async with httpx.AsyncClient(base_url=gateway.url, timeout=30, trust_env=False) as client:
            return (await client.get("/healthz")).status_code
    return 0


async def is_served(gateway: Gateway) -> bool:
    return await status(gateway) == 200


@contextlib.contextmanager
def idle(gateway: Gateway, count: int) -> Iterator[list[socket.socket]]:
    """This number of connections on which nothing is sent."""
    with contextlib.ExitStack() as stack:
        address = ("127.0.0.1", gateway.port)
        yield [stack.enter_context(socket.create_connection(address, timeout=60)) for _ in range(count)]


@contextlib.asynccontextmanager
async def streams(gateway: Gateway, store: Store, count: int) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """This number of connections in use: each watches a task that nobody runs."""
    task = await store.submit_one(NewTask(task_type="echo"))
    request = f"GET /api/v1/tasks/{task.task_id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    opened: list[asyncio.StreamWriter] = []
    try:
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            opened.append(writer)
            writer.write(request)
            assert b" 200 " in await reader.readline()
        yield opened
    finally:
        for writer in opened:
            writer.transport.abort()


async def test_a_client_too_many_is_refused_until_another_has_left(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    with served(live_store, server, tmp_path, max_connections=MOST) as gateway:
        async with streams(gateway, live_store, MOST) as opened:
            for _ in range(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                answer = await rest(reader)
                writer.close()
                assert answer.startswith(b"HTTP/1.1 503 ") and b'"code":"server_full"' in answer
                assert b"retry-after: 1" in answer
            opened[0].transport.abort()
            await wait_until(lambda: is_served(gateway))
        logged = gateway.log_text()
    assert logged.count("connections_full") == 1, logged


async def test_idle_connections_make_room_for_others(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    with served(live_store, server, tmp_path, max_connections=MOST, read_seconds=600) as gateway:
        async with streams(gateway, live_store, MOST // 2):
            with idle(gateway, 10 * MOST) as waiting:
                for _ in range(10):
                    assert await status(gateway) == 200
                waiting[-1].sendall(GET)  # the one that was idle for the shortest time
                assert waiting[-1].recv(1 << 16).startswith(b"HTTP/1.1 200 ")
                assert waiting[0].recv(1 << 16) == b""


async def test_an_idle_connection_is_closed_after_a_while(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    with served(live_store, server, tmp_path, idle_seconds=0.5) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        for _ in range(3):
            writer.write(GET)
            assert b" 200 " in await reader.readline()
            await reader.readuntil(b"}")
        assert await rest(reader) == b""
        writer.close()


async def test_running_out_of_files_is_survived(live_store: Store, server: Server, tmp_path: Path) -> None:
    with served(live_store, server, tmp_path) as gateway:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=30) as inside:
            (await inside.get("/readyz")).raise_for_status()
            open_files = len(list(Path(f"/proc/{gateway.process.pid}/fd").iterdir()))
            _, hard = resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE)
            async with streams(gateway, live_store, 10):
                resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (open_files + 60, hard))
                with idle(gateway, 200):

                    async def has_no_more_files() -> bool:
                        # served, unless this very connection was idle and closed to make room for others
                        with contextlib.suppress(httpx.ReadError, httpx.RemoteProtocolError):
                            (await inside.get("/healthz")).raise_for_status()
                        return "accept_failed" in gateway.log_text()

                    await wait_until(has_no_more_files)
                    resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
                    await wait_until(lambda: is_served(gateway))
        logged = gateway.log_text()
    assert logged.count("accept_failed") == 1 and "Traceback" not in logged, logged


@pytest.mark.timeout(180)
async def test_ten_thousand_idle_connections_hurt_nobody(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(10_000, hard // 2 - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with served(live_store, server, tmp_path, read_seconds=600) as gateway:
            assert await status(gateway) == 200
            memory = memory_of(gateway)
            with idle(gateway, count) as waiting:
                for _ in range(20):
                    assert await status(gateway) == 200
                for each in (waiting[0], waiting[-1]):
                    each.sendall(GET)
                    assert each.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
                assert (memory_of(gateway) - memory) * 1024 / count < 32  # KiB for each
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
