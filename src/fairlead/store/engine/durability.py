"""Warns about a server that writes no append-only file: its end loses what it has accepted."""

import contextlib

from fairlead.errors import FairleadError
from fairlead.log.events import EventLog
from fairlead.store.connection import text
from fairlead.store.store import Store

PROBLEM = "appendonly is off: tasks that were accepted are lost when the server ends"
NEXT_STEP = "set `appendonly yes` and `appendfsync always` in the server's configuration"

log = EventLog("fairlead.store")


async def warn_if_not_durable(store: Store) -> None:
    """For servers, and for workers that have joined. A store that does not answer is noticed elsewhere."""
    with contextlib.suppress(FairleadError):
        persistence = text(await store.connection.call("INFO", "persistence"))
        if "aof_enabled:0" in persistence.split():
            log.warning("server_not_durable", store=store.address, problem=PROBLEM, next_step=NEXT_STEP)
