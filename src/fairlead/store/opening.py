"""A store for these settings: on the given server, or on the embedded one of the data folder."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fairlead.settings import Settings
from fairlead.store.engine import open_engine
from fairlead.store.engine_folder import default_data_folder
from fairlead.store.store import Store


@asynccontextmanager
async def connected_store(settings: Settings) -> AsyncIterator[Store]:
    """Connected, but not opened: nothing is written. The embedded server ends with whoever started it."""
    if settings.engine.url:
        store = Store.connect(settings.engine.url, settings.engine.namespace, settings)
        try:
            yield store
        finally:
            await store.close()
        return
    data = Path(settings.engine.data) if settings.engine.data else default_data_folder(os.environ)
    async with await open_engine(data, durability=settings.engine.durability) as engine:
        store = Store.connect(engine.url, settings.engine.namespace, settings)
        try:
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncIterator[Store]:
    async with connected_store(settings) as store:
        await store.open()
        yield store
