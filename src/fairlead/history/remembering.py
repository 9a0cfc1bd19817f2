"""What the history knows of a namespace: with it a process that starts notices a loss of data."""

import asyncio
from functools import partial

from fairlead.errors import FairleadError
from fairlead.history.generations import generations_of
from fairlead.history.opening import History, open_history
from fairlead.history.paging import AT_ONCE, of_ids
from fairlead.log.events import EventLog
from fairlead.store.acceptance import Accepted
from fairlead.store.store import Store

WITHIN_SECONDS = 3.0  # a server starts without a database that does not answer

log = EventLog("fairlead.history")


async def recall_from_history(store: Store) -> None:
    """Lets this process expect the data that was recorded last."""
    if not (history := open_history(store.settings)):
        return
    try:
        async with asyncio.timeout(WITHIN_SECONDS):
            lives = await generations_of(history, most=1)
    except (FairleadError, TimeoutError) as problem:
        log.warning("history_not_recalled", problem=str(problem) or "it did not answer in time")
        return
    finally:
        await history.close()
    store.known_elsewhere = partial(_unknown, store)
    if lives:
        store.connection.membership.recall(lives[0].epoch, lives[0].beat)


async def _unknown(store: Store, missing: list[Accepted]) -> list[Accepted]:
    """Without what the history has: it ended, and the store has forgotten it."""
    if not missing or not (history := open_history(store.settings)):
        return missing
    try:
        tasks = await _ids(history, "tasks", [one for kind, one in missing if kind == "task"])
        jobs = await _ids(history, "jobs", [one for kind, one in missing if kind == "job"])
    finally:
        await history.close()
    return [(kind, one) for kind, one in missing if one not in (tasks if kind == "task" else jobs)]


async def _ids(history: History, table: str, ids: list[str]) -> set[str]:
    found = set[str]()
    for first in range(0, len(ids), AT_ONCE):
        sql = f"SELECT id FROM {table} WHERE id IN ({{marks}}) AND namespace = ?"
        found.update(one for (one,) in await of_ids(history, sql, ids[first : first + AT_ONCE]))
    return found
