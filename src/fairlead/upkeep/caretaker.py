"""Keeps a namespace in order: of all processes that run a caretaker one is elected, and does every duty."""

import asyncio
import contextlib
import os

import uuid_utils

from fairlead.errors import FairleadError, StoreLost, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of
from fairlead.store.store import Store
from fairlead.upkeep.duties import BATCH, DUTIES

EVERY_SECONDS = 1.0
ELECTED_SECONDS = 5.0

log = EventLog("fairlead.upkeep")


class Caretaker:
    def __init__(
        self, store: Store, *, every_seconds: float = EVERY_SECONDS, elected_seconds: float = ELECTED_SECONDS
    ) -> None:
        self.name = f"{os.getpid()}-{uuid_utils.uuid7()}"
        self.is_elected = False
        self._store = store
        self._every_seconds = every_seconds
        self._elected_ms = round(elected_seconds * 1000)
        self._trouble = ""

    async def run(self) -> None:
        """Until cancelled; then another one may take over at once."""
        try:
            while True:
                more = await self._run_or_recover()
                await asyncio.sleep(0 if more else self._every_seconds)
        finally:
            with contextlib.suppress(FairleadError):
                await self._store.upkeep.resign(self.name)

    async def run_once(self) -> dict[str, int]:
        """Every duty once, with how much each did; none when another process is elected."""
        elected = await self._store.upkeep.elect(self.name, self._elected_ms)
        if self.is_elected != (elected == self.name):
            self.is_elected = not self.is_elected
            log.info("caretaker_elected" if self.is_elected else "caretaker_replaced", caretaker=self.name)
        done: dict[str, int] = {}
        for duty, run_once in DUTIES.items() if self.is_elected else ():
            try:
                done[duty] = await run_once(self._store)
            except StoreUnavailable:
                raise
            except Exception as problem:  # one duty that fails must not end the others
                log.error("duty_failed", duty=duty, traceback=traceback_of(problem))
        return done

    async def _run_or_recover(self) -> bool:
        """Whether there is more to do at once."""
        try:
            done = await self.run_once()
        except FairleadError as problem:
            self.is_elected = False  # unknown without an answer of the store
            self._say(problem)
            with contextlib.suppress(FairleadError):
                await self._store.reopen()
            return False
        self._say(None)
        return any(count >= BATCH for count in done.values())

    def _say(self, problem: FairleadError | None) -> None:
        """Once for each kind of trouble, not each second."""
        trouble = problem.code if problem else ""
        if trouble and trouble != self._trouble and not isinstance(problem, StoreLost):  # the monitor says it
            log.warning("upkeep_waits", code=trouble, problem=str(problem))
        elif self._trouble and not trouble:
            log.info("upkeep_goes_on")
        self._trouble = trouble
