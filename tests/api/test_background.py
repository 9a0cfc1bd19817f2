"""Background work of a server: after a failure it is started again, and /readyz reports it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead import background
from fairlead.api.live.connections import Connections
from fairlead.api.readiness import ServerWatch
from fairlead.api.serving import address_of, listen, serve
from fairlead.api.side_process import SideProcess
from fairlead.model.reports import Grant
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.settings.loading import load_settings
from fairlead.store import subscription
from fairlead.store.store import Store
from fairlead.upkeep.caretaker import Caretaker
from fairlead.worker.claimer import Claimer
from fairlead.worker.signals import StopRequest
from tests.pipeline.servers import raw_service
from tests.servers import Server
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LONGEST_PAUSE", 0.2)
    monkeypatch.setattr(background, "SHORT_LIFE", 0.5)


@asynccontextmanager
async def served(
    store: Store, server: Server, config: str = "", estimates: bool = False
) -> AsyncIterator[httpx.AsyncClient]:
    """A server in this process, so that a fault can be planted in it."""
    place = f'[engine]\nurl = "{server.url}"\nnamespace = "{store.connection.keys.namespace}"\n'
    place += f"[estimates]\nenabled = {str(estimates).lower()}\n"
    path = Path.cwd() / "fairlead.toml"
    path.write_text(place + config)
    opened, stop = listen("127.0.0.1", 0), StopRequest(0.0)
    running = asyncio.create_task(serve([store], load_settings(path, {}), "127.0.0.1", opened, stop))
    try:
        async with httpx.AsyncClient(base_url=address_of(opened), trust_env=False) as client:
            yield client
    finally:
        stop.requested.set()
        with suppress(asyncio.CancelledError):
            await running


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def reasons(client: httpx.AsyncClient) -> set[str]:
    answer = await client.get("/readyz")
    return {reason["code"] for reason in answer.json().get("reasons", ())}


WORK: dict[str, tuple[type[Any], str]] = {
    "upkeep": (Caretaker, "run_once"),
    "server_watch": (ServerWatch, "look"),
    "key_watch": (Connections, "watch_keys"),
}


@pytest.mark.parametrize("name", WORK)
async def test_work_that_fails_turns_the_server_red_until_it_runs_again(
    live_store: Store,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    repaired = asyncio.Event()
    owner, method = WORK[name]
    works = getattr(owner, method)

    async def work(*given: Any) -> Any:
        if not repaired.is_set():
            raise KeyError("planted")
        return await works(*given)

    monkeypatch.setattr(owner, method, work)
    async with served(live_store, server) as client:

        async def is_red() -> bool:
            return f"{name}_failing" in await reasons(client)

        async def is_green() -> bool:
            return (await client.get("/readyz")).status_code == 200

        await wait_until(is_red)
        repaired.set()
        await wait_until(is_green)
    assert "KeyError: 'planted'" in caplog.text


@pytest.mark.parametrize("enabled", [True, False])
async def test_forecasts_are_made_only_if_estimates_are_enabled(
    live_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> None:
    begun = asyncio.Event()

    async def run(_: SideProcess) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(SideProcess, "run", run)
    async with served(live_store, server, estimates=enabled) as client:
        await client.get("/healthz")  # all that is done in the background has begun
    assert begun.is_set() == enabled


async def test_the_worker_of_the_services_is_replaced_when_it_fails(
    live_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    works, failed = Claimer.work, asyncio.Event()

    async def fail_once(claimer: Claimer) -> None:
        if not failed.is_set():
            failed.set()
            raise KeyError("planted")
        await works(claimer)

    monkeypatch.setattr(Claimer, "work", fail_once)
    async with raw_service(answer) as service:
        config = f'[services.echo]\nurl = "{service.url}"\nlimit = 1\n'
        async with served(live_store, server, config):
            await wait_until(failed.is_set)
            task = await live_store.submit_one(NewTask(task_type="service:echo"))

            async def has_completed() -> bool:
                return (await live_store.get(task.task_id)).status is State.COMPLETED

            await wait_until(has_completed)
    assert "KeyError: 'planted'" in caplog.text


async def answer(_: Any, writer: asyncio.StreamWriter) -> None:
    body = b'{"data":{},"metrics":{}}'
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
    writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()


async def test_a_subscription_that_fails_is_made_again(
    live_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, failed = subscription.until_silent, asyncio.Event()

    async def fail_once(wire: Any) -> None:
        if not failed.is_set():
            failed.set()
            raise KeyError("planted")
        await waits(wire)

    monkeypatch.setattr(subscription, "until_silent", fail_once)
    task = NewTask(task_type="echo")
    await live_store.submit_one(task)
    async with live_store.live.watch(task.task_id) as events:
        await wait_until(failed.is_set)
        async with asyncio.timeout(20):
            async for event in events:
                if event:
                    break
                # Subscribed, or subscribed again: earlier events may be missing.
                await live_store.workers.register("w")
                for held in (await live_store.claim("w")).tasks:
                    await live_store.release("w", Grant(held.task_id, held.fence))
