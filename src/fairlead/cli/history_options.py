"""The history that commands work on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairlead.errors import InvalidSettings
from fairlead.history.opening import History, open_history
from fairlead.settings import Settings

NO_HISTORY = "there is no history: set history.url (or DATABASE_URL), and history.enabled = true"


@asynccontextmanager
async def opened_history(settings: Settings, *, durable: bool = False) -> AsyncIterator[History]:
    history = open_history(settings, durable=durable)
    if not history:
        raise InvalidSettings(NO_HISTORY)
    try:
        yield history
    finally:
        await history.close()
