"""The way in that the settings name: a gateway over HTTP, or the store itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import NoReturn, Protocol

from fairlead import tracing
from fairlead.backend import Backend
from fairlead.background import in_background
from fairlead.errors import FairleadError
from fairlead.history.archive import with_archive
from fairlead.log.events import EventLog
from fairlead.settings import Settings
from fairlead.store.monitor import Monitor
from fairlead.store.opening import connected_store

CONFIRM_SECONDS = 3600.0  # a day without it, and what was declared is forgotten

log = EventLog("fairlead.client")


class Declarer(Protocol):
    """What a process declares when it joins, and confirms while it runs."""

    async def declare(self, backend: Backend) -> None: ...

    async def confirm(self, backend: Backend) -> bool:
        """False: some of it is no longer known."""


def connected_backend(settings: Settings) -> AbstractAsyncContextManager[Backend]:
    """Connected, but not opened: nothing is written."""
    if settings.engine.is_gateway:
        from fairlead.client.client import Client  # its HTTP library takes a tenth of a second to import

        return Client(settings)
    return with_archive(connected_store(settings), settings)


@asynccontextmanager
async def joined_backend(settings: Settings, declarer: Declarer, *, waits: bool) -> AsyncIterator[Backend]:
    """Connected and joined, and joined again after a loss. `waits`: for a namespace that is lost already."""
    tracing.join(settings.tracing)
    async with (
        _joined(settings, declarer.declare, waits) as backend,
        in_background({"declarations": partial(_stay_declared, backend, declarer)}),
    ):
        yield backend


@asynccontextmanager
async def _joined(
    settings: Settings, join: Callable[[Backend], Awaitable[None]], waits: bool
) -> AsyncIterator[Backend]:
    if settings.engine.is_gateway:
        async with connected_backend(settings) as backend:
            await join(backend)
            yield backend
    else:
        async with (
            with_archive(connected_store(settings), settings) as store,
            Monitor(store).watching(partial(join, store), waits=waits),
        ):
            yield store


async def _stay_declared(backend: Backend, declarer: Declarer) -> NoReturn:
    while True:
        await asyncio.sleep(CONFIRM_SECONDS)
        try:
            if not await declarer.confirm(backend):
                log.warning("declared_again", reason="some of it was forgotten")
                await declarer.declare(backend)
        except FairleadError as problem:  # the store is away, or the key may only submit
            log.info("not_confirmed", problem=str(problem))
