"""`fairlead server` and `up` stop while a service is being called: the call has the grace, no more."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.api.serving import Gateway, serving
from tests.pipeline.servers import RawService, Request, raw_service
from tests.servers import Server
from tests.waiting import wait_until

Where = tuple[str, str, Path]


@pytest.fixture
def where(live_store: Store, server: Server, tmp_path: Path) -> Where:
    return server.url, live_store.connection.keys.namespace, tmp_path


async def hang(_: Request, __: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def calling(store: Store, folder: Path) -> AsyncIterator[tuple[RawService, str]]:
    """A service that does not answer, in the settings of `folder`, and a task that calls it."""
    async with raw_service(hang) as service:
        text = f'[services.slow]\nurl = "{service.url}"\nlimit = 1\ntimeout_seconds = 600\n'
        (folder / "fairlead.toml").write_text(text)
        yield service, "service:slow"


async def under_way(gateway: Gateway, store: Store, service: RawService, kind: str) -> str:
    """A call of the service that hangs; the task that makes it."""
    task = await store.submit_one(NewTask(task_type=kind))
    await wait_until(lambda: len(service.requests) == 1, 30, gateway.log_text())
    return task.task_id


@pytest.mark.parametrize("command", ["server", "up"])
async def test_a_call_under_way_is_returned_after_the_grace(
    live_store: Store, where: Where, tmp_path: Path, command: str
) -> None:
    async with calling(live_store, tmp_path) as (service, kind):
        with serving(*where, "--grace", "0.3", command=command) as gateway:
            task_id = await under_way(gateway, live_store, service, kind)
            gateway.process.send_signal(signal.SIGTERM)
            assert await gateway.ended() == 0
    assert (await live_store.get(task_id)).status is State.QUEUED


@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=["one process", "two"])
async def test_the_second_signal_gives_it_back_at_once(
    live_store: Store, where: Where, tmp_path: Path, options: tuple[str, ...]
) -> None:
    async with calling(live_store, tmp_path) as (service, kind):
        with serving(*where, "--grace", "600", *options) as gateway:
            task_id = await under_way(gateway, live_store, service, kind)
            while gateway.process.returncode is None:  # signals within a second count as one
                gateway.process.send_signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await gateway.process.wait()
            assert gateway.process.returncode == 0, gateway.log_text()
    assert (await live_store.get(task_id)).status is State.QUEUED


async def test_a_call_that_ends_within_the_grace_is_completed(
    live_store: Store, where: Where, tmp_path: Path
) -> None:
    released = asyncio.Event()

    async def answer(_: Request, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        body = b'{"data":{"text":"late"},"metrics":{}}'
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()

    async with calling(live_store, tmp_path) as (service, kind):
        service.reply = answer
        with serving(*where, "--grace", "60") as gateway:
            task_id = await under_way(gateway, live_store, service, kind)
            gateway.process.send_signal(signal.SIGHUP)

            async def listens_no_more() -> bool:
                async with httpx.AsyncClient() as http:
                    try:
                        await http.get(f"{gateway.url}/healthz")
                    except httpx.TransportError:
                        return True
                    return False

            await wait_until(listens_no_more)
            released.set()
            assert await gateway.ended() == 0
    assert (await live_store.get(task_id)).status is State.COMPLETED
