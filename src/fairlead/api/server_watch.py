"""Checks the store's server every few seconds: its configuration may have changed."""

import asyncio
import contextlib

from fairlead.api.readiness import Readiness
from fairlead.errors import FairleadError
from fairlead.log.events import EventLog
from fairlead.store.engine.health import FAILED, TRUNCATED
from fairlead.store.engine.state import DISK, EVICTS, REPLICA, look, problem_behind
from fairlead.store.store import Store

EVERY_SECONDS = 2.0
MAKE_ROOM = "finished tasks are forgotten early: raise maxmemory, or keep less (retention, outbox.max_events)"

log = EventLog("fairlead.api")


class ServerWatch:
    def __init__(self, store: Store, readiness: Readiness, every_seconds: float = EVERY_SECONDS) -> None:
        self._store = store
        self._readiness = readiness
        self._every_seconds = every_seconds
        self._is_pressed = False

    async def run(self) -> None:
        """Runs until cancelled. While the store does not answer, the last result counts."""
        while True:
            with contextlib.suppress(FairleadError):
                await self.look()
            await asyncio.sleep(self._every_seconds)

    async def look(self) -> None:
        """An embedded server that has ended cannot be asked, but its log says why."""
        found = dict(self._store.engine_problems())
        for reason, problem in found.items():
            self._readiness.refuse(reason, problem)
        found |= await self._ask()
        for reason in (EVICTS, REPLICA, DISK, FAILED, TRUNCATED):
            if reason in found:
                self._readiness.refuse(reason, found[reason])
            else:
                self._readiness.clear(reason)

    async def _ask(self) -> dict[str, str]:
        found = await look(self._store.connection)
        try:
            memory = await self._store.upkeep.inspect()
        except FairleadError as refusal:
            return problem_behind(refusal) | found  # INFO is more exact
        self._say(memory.pressed is not None, memory.used, memory.most)
        return found

    def _say(self, is_pressed: bool, used: int | None, most: int | None) -> None:
        if is_pressed and not self._is_pressed:
            log.warning("memory_nearly_full", used=used, maxmemory=most, next_step=MAKE_ROOM)
        elif self._is_pressed and not is_pressed:
            log.info("memory_relieved", used=used, maxmemory=most)
        self._is_pressed = is_pressed
