"""Whether what happens reaches the history in time, as /readyz warns. The queue works without it."""

import asyncio
import contextlib

from fairlead.api.readiness import Readiness
from fairlead.clock import monotonic
from fairlead.errors import FairleadError
from fairlead.store.outbox import Lag
from fairlead.store.store import Store

EVERY_SECONDS = 2.0
LATE_SECONDS = 60.0
LOST_SECONDS = 600.0  # a loss is shown for as long
BEHIND, LOST = "history_behind", "history_lost"


class HistoryWatch:
    def __init__(self, store: Store, readiness: Readiness, *, late_seconds: float = LATE_SECONDS) -> None:
        self._store, self._readiness = store, readiness
        self._late_seconds = late_seconds
        self._lost: int | None = None
        self._lost_at = -LOST_SECONDS
        self.problem = ""  # of the recorder beside this server, if it is there

    async def run(self) -> None:
        """Until cancelled. While the store does not answer, the last result counts."""
        while True:
            with contextlib.suppress(FairleadError):
                await self.look()
            await asyncio.sleep(EVERY_SECONDS)

    async def look(self) -> None:
        if lag := await self._store.outbox.lag():
            self._judge(lag, monotonic())

    def _judge(self, lag: Lag, now: float) -> None:
        if self._lost is not None and lag.lost > self._lost:
            self._lost_at = now
        self._lost = lag.lost
        why = self.problem or "see history_waits in the log of the server that does the upkeep"
        behind = f"The history is {lag.seconds:.0f} s behind, {lag.events} events wait in the store: {why}."
        lost = (
            f"Events were dropped before they were recorded, {lag.lost} so far: {why}; see outbox.max_events."
        )
        self._readiness.warn(BEHIND, behind if lag.seconds >= self._late_seconds else None)
        self._readiness.warn(LOST, lost if now - self._lost_at < LOST_SECONDS else None)
