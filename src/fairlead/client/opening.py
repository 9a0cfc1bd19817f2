"""The way in that the settings name: a gateway over HTTP, or the store itself."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from fairlead.backend import Backend
from fairlead.settings import Settings
from fairlead.store.monitor import Monitor
from fairlead.store.opening import connected_store


@asynccontextmanager
async def connected_backend(settings: Settings) -> AsyncIterator[Backend]:
    """Connected, but not opened: nothing is written."""
    if settings.engine.is_gateway:
        from fairlead.client.client import Client  # its HTTP library takes a tenth of a second to import

        async with Client(settings) as client:
            yield client
    else:
        async with connected_store(settings) as store:
            yield store


@asynccontextmanager
async def joined_backend(
    settings: Settings, join: Callable[[Backend], Awaitable[None]], *, waits: bool
) -> AsyncIterator[Backend]:
    """Connected and joined, and joined again after a loss. `waits`: for a namespace that is lost already."""
    if settings.engine.is_gateway:
        async with connected_backend(settings) as backend:
            await join(backend)
            yield backend
    else:
        async with (
            connected_store(settings) as store,
            Monitor(store).watching(partial(join, store), waits=waits),
        ):
            yield store
