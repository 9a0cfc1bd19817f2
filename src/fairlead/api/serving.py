"""The server process: a gateway for a store, on an open socket."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from fairlead.api.auto_restore import AutoRestore
from fairlead.api.batching import SubmitBatcher
from fairlead.api.budget import Budget
from fairlead.api.failed_keys import FailedKeys
from fairlead.api.gateway import Gateway
from fairlead.api.http.manager import Bounds
from fairlead.api.http.server import HttpServer
from fairlead.api.live.connections import Connections
from fairlead.api.polls import Polls
from fairlead.api.priority_service import PriorityService
from fairlead.api.readiness import Readiness, ServerWatch
from fairlead.api.server import make_app
from fairlead.api.side_works import SideWorks
from fairlead.background import Work, in_background
from fairlead.errors import InvalidSettings, StoreUnavailable
from fairlead.history.archive import add_archive
from fairlead.log.events import EventLog
from fairlead.open_files import allowed_open_files
from fairlead.settings import ServerSettings, Settings
from fairlead.store.access.key_ring import KeyRing
from fairlead.store.engine.state import warn_if_not_durable
from fairlead.store.monitor import Monitor
from fairlead.store.store import Store
from fairlead.upkeep.caretaker import Caretaker
from fairlead.worker.services import running_services
from fairlead.worker.signals import StopRequest
from fairlead.worker.worker import Worker

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
BACKLOG = 2048
LOOK_SECONDS = 0.5  # between two checks whether the store has lost data
GRACE_SECONDS = 5  # for requests under way when the server stops

log = EventLog("fairlead.api")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def listen(host: str, port: int) -> socket.socket:
    """Opens the socket before anything else, so that a port in use is reported at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen(BACKLOG)
    except OSError as problem:
        opened.close()
        raise InvalidSettings(
            f"cannot listen on {host}:{port}: {problem.strerror}; choose another with --host and --port"
        ) from None
    return opened


def address_of(opened: socket.socket) -> str:
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def check_exposure(stores: Sequence[Store], host: str, insecure: bool) -> None:
    """Refuses to serve an address that others can reach without keys."""
    if is_loopback(host) or await _any_keys(stores) is not False:
        return
    if not insecure:
        raise InvalidSettings(
            f"{host} can be reached by others, and there is no key: make one with `fairlead key create`, "
            "listen on 127.0.0.1, or say --insecure"
        )
    log.warning(
        "insecure", host=host, problem="there is no key, so every client that reaches it may do everything"
    )


async def serve(
    stores: Sequence[Store],
    settings: Settings,
    host: str,
    opened: socket.socket,
    stop: StopRequest,
    end: asyncio.Event | None = None,
) -> None:
    """Runs the gateway, upkeep and the worker that calls services, of each namespace, until `stop` is set.

    The first of the stores is that of requests that name no namespace.

    With an `end`, requests are answered until then: a worker beside it still has to report its results.
    """
    async with AsyncExitStack() as stack:
        gateways = await _gateways(stack, stores, settings, host)
        home, beside = gateways[0], SideWorks()
        for store in {gateway.store.connection.address: gateway.store for gateway in gateways}.values():
            await warn_if_not_durable(store.connection)
        for gateway in gateways:
            own = settings.of_namespace(gateway.namespace)
            await add_archive(stack, gateway.store, own)
            await stack.enter_async_context(_services(gateway.store, own, stop, gateway))
            caretaker = Caretaker(gateway.store)
            works = _works(gateway, caretaker) | beside.add(gateway, caretaker, own)
            await stack.enter_async_context(in_background(works, gateway.readiness.note_background))
        await stack.enter_async_context(in_background(beside.works, home.readiness.note_background))
        bounds = _bounds(settings.server)
        async with HttpServer.listening(make_app(home), bounds, opened) as server:
            await (end or stop.requested).wait()
            home.stopping.set()
            for gateway in gateways:
                gateway.connections.end_all()
            await server.stop(min(GRACE_SECONDS, stop.grace), stop.hurried)
            for gateway in gateways:
                await gateway.tally.add()


def _works(gateway: Gateway, caretaker: Caretaker) -> dict[str, Work]:
    """What is done all the time for a namespace."""
    store = gateway.store
    restoring = {"auto_restore": AutoRestore(store).run} if store.settings.history.auto_restore else {}
    return {
        **restoring,
        "loss_watch": Monitor(store, gateway.report_loss, LOOK_SECONDS).run,
        "upkeep": caretaker.run,
        "server_watch": ServerWatch(store, gateway.readiness).run,
        "tally": gateway.tally.run,
        "key_watch": partial(gateway.connections.watch_keys, gateway.may_stay),
    }


@asynccontextmanager
async def _services(
    store: Store, settings: Settings, stop: StopRequest, gateway: Gateway
) -> AsyncIterator[None]:
    if not settings.services:
        yield
        return
    calls = ServiceCalls(store, settings, stop)
    async with in_background({"service_calls": calls.run}, gateway.readiness.note_background):
        await calls.started.wait()
        yield
        await calls.drain()


class ServiceCalls:
    """The worker of a server process that calls the services of the settings."""

    def __init__(self, store: Store, settings: Settings, stop: StopRequest) -> None:
        self.started = asyncio.Event()  # the worker has registered, or failed to start
        self._store = store
        self._settings = settings
        self._stop = stop
        self._worker: Worker | None = None
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Runs until cancelled; raises the error that ended the worker. A drained one is not replaced."""
        self._ended.clear()
        # the gateway serves even if the store has lost its data, to report that: the worker waits by itself
        wait = self._store.connection.membership.problem is None and self._store.is_joined
        calling = running_services(self._store, self._settings, grace=self._stop.grace, wait=wait)
        try:
            async with calling as self._worker:
                self.started.set()
                draining = asyncio.create_task(self._drain_when_asked(self._worker))
                try:
                    await self._worker.ended.wait()
                finally:
                    draining.cancel()
                if self._worker.lost_heartbeat:
                    raise RuntimeError("the heartbeat of the worker that calls the services has ended")
        finally:
            self._worker = None
            self._ended.set()
            self.started.set()
        await asyncio.Event().wait()

    async def drain(self) -> None:
        """Returns when calls under way have ended, or were given back after the grace."""
        if self._worker:
            self._worker.drain()
            await self._ended.wait()

    async def _drain_when_asked(self, worker: Worker) -> None:
        await self._stop.requested.wait()
        worker.drain()
        await self._stop.hurried.wait()
        worker.drain(0)


async def _gateways(
    stack: AsyncExitStack, stores: Sequence[Store], settings: Settings, host: str
) -> list[Gateway]:
    sites = frozenset(name.lower() for name in settings.server.hosts)
    # on loopback a page of another site must not be accepted under its own name
    hosts = sites | {host.lower()} | LOOPBACK_NAMES if sites or is_loopback(host) else None
    has_keys = await _any_keys(stores)
    shared: dict[str, Any] = {
        "asks_for_keys": not is_loopback(host) if has_keys is None else has_keys,
        "failed_keys": FailedKeys(settings.server.failed_keys_per_minute),
        "submit_rate": settings.server.submit_rate,
        "uploads": asyncio.Semaphore(settings.blobs.max_uploads),
        "hosts": hosts,
        "sites": sites,
        "budget": Budget(),
        "stopping": asyncio.Event(),
        "family": {},
    }
    for store in stores:
        namespace = store.connection.keys.namespace
        own = settings.of_namespace(namespace)
        priorities = None
        if own.priority_service.url:
            service = PriorityService(own.priority_service, own.fairness.plans)
            priorities = await stack.enter_async_context(service)
        await stack.enter_async_context(store.policy.listening())
        shared["family"][namespace] = Gateway(
            store=store,
            batcher=await stack.enter_async_context(SubmitBatcher(store)),
            polls=await stack.enter_async_context(Polls(store)),
            keys=await stack.enter_async_context(KeyRing(store.api_keys)),
            priorities=priorities,
            connections=Connections(settings.server.live_per_key),
            readiness=Readiness(namespace if len(stores) > 1 else ""),
            **shared,
        )
    return [*shared["family"].values()]


async def _any_keys(stores: Sequence[Store]) -> bool | None:
    """None: unknown, because a store has lost its data, or cannot be reached."""
    found: set[bool | None] = set()
    for store in stores:
        try:
            found.add(await store.api_keys.any())
        except StoreUnavailable:
            found.add(None)
    return True if True in found else None if None in found else False


def _bounds(settings: ServerSettings) -> Bounds:
    return Bounds(
        read_seconds=settings.read_seconds,
        write_seconds=settings.write_seconds,
        idle_seconds=settings.idle_seconds,
        # the connections to the store are files too
        most_connections=min(settings.max_connections, allowed_open_files() * 3 // 4),
    )
