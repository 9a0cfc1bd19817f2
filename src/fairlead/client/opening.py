"""The way in that the settings name: a gateway over HTTP, or the store itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairlead.backend import Backend
from fairlead.settings import Settings
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
