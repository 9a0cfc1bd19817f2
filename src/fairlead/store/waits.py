"""Estimates for those who watch tasks that wait: one poll of a process for all of them."""

import asyncio
import contextlib
from collections.abc import Callable

from fairlead.background import cancel_all, keep_running
from fairlead.errors import FairleadError
from fairlead.model.estimate import Estimate, has_moved
from fairlead.store.queries import Queries

LOOK_SECONDS = 2.0  # between two polls

#: Is given a task, and the estimate that has moved.
Tell = Callable[[str, Estimate], None]


class Waits:
    """The tasks that wait and are watched, each with what its watchers know of its estimate."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._told: dict[str, dict[Tell, Estimate | None]] = {}  # by task
        self._polling: asyncio.Task[None] | None = None

    def expect(self, task_id: str, tell: Tell, known: Estimate | None) -> None:
        """The task waits: `tell` is called whenever its estimate has moved from the one that is known."""
        self._told.setdefault(task_id, {})[tell] = known
        if self._polling is None:
            self._polling = asyncio.create_task(keep_running("estimates", self._poll))

    def forget(self, task_id: str, tell: Tell) -> None:
        told = self._told.get(task_id, {})
        told.pop(tell, None)
        if not told:
            self._told.pop(task_id, None)

    async def rest(self) -> None:
        """Ends the poll if nothing is left to poll for."""
        if not self._told and self._polling:
            polling, self._polling = self._polling, None
            await cancel_all(polling)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with contextlib.suppress(FairleadError):  # the store is away: the next poll finds what has moved
                await self._look()

    async def _look(self) -> None:
        for task_id, estimate in (await self._queries.estimates_of(*self._told)).items():
            for tell, told in [*self._told.get(task_id, {}).items()]:
                if has_moved(told, estimate):
                    self._told[task_id][tell] = estimate
                    tell(task_id, estimate)
