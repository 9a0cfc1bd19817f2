"""Records the history of a namespace as long as it is elected to, whatever happens to the databases."""

import asyncio
import contextlib
import os
import random
from collections.abc import Callable

import uuid_utils

from fairlead.clock import monotonic
from fairlead.errors import FairleadError, HistoryTooNew
from fairlead.history.definitions import DefinitionsCopy
from fairlead.history.opening import History
from fairlead.history.pruning import AT_ONCE, Keep, prune
from fairlead.log.events import EventLog
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder

PROMPT_SECONDS = 0.01  # the same while clients wait for it
IDLE_SECONDS = 0.5  # before the next look: what happens meanwhile is recorded together
MORE = 100  # recorded in one round: there is probably more
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds, while a database is away
ELECTED_SECONDS = 15.0  # more than a transaction takes
TRIM_SECONDS = 5.0
COPY_SECONDS = 10.0  # between two copies of limits, keys and declarations
PRUNE_SECONDS = 60.0  # from the time when there was nothing more to prune
KEEP = Keep()

log = EventLog("fairlead.history")


class Recording:
    def __init__(
        self,
        store: Store,
        history: History,
        *,
        idle_seconds: float = IDLE_SECONDS,
        longest_pause: float = LONGEST_PAUSE,
        elected_seconds: float = ELECTED_SECONDS,
        tell: Callable[[str], None] = lambda problem: None,
        keep: Keep = KEEP,
        name: str = "",
    ) -> None:
        """`tell` is given what is wrong, when that changes; "": nothing.

        `name`: of the one that it replaces, if that may be killed, so that this one is elected at once.
        """
        self.name = name or f"{os.getpid()}-{uuid_utils.uuid7()}"
        self.is_elected = False
        self._store, self._history = store, history
        self._recorder = Recorder(store, history)
        self._definitions = DefinitionsCopy(store, history)
        self._idle_seconds, self._longest_pause = idle_seconds, longest_pause
        self._elected_seconds = elected_seconds
        self._elected_at = self._trimmed_at = self._copied_at = -elected_seconds
        self._trouble, self._tell = "", tell
        self._keep, self._prune_at = keep, 0.0
        self._pause = FIRST_PAUSE

    async def run(self) -> None:
        """Until cancelled; then another process may take over at once."""
        try:
            while True:
                await asyncio.sleep(await self._run_or_wait())
        finally:
            with contextlib.suppress(FairleadError):
                await self._store.upkeep.resign(self.name, "recorder")

    async def _run_or_wait(self) -> float:
        """Seconds until the next round."""
        try:
            count = await self._run_once()
        except FairleadError as problem:
            self._say(problem)
            with contextlib.suppress(FairleadError):
                await self._store.reopen()
            pause, self._pause = self._pause, min(self._longest_pause, 2 * self._pause)
            return pause * random.uniform(0.5, 1)
        self._say(None)
        self._pause = min(FIRST_PAUSE, self._longest_pause)
        return 0 if count >= MORE else self._idle_seconds

    async def _run_once(self) -> int:
        now = monotonic()
        if now - self._elected_at > self._elected_seconds / 3:
            elected = await self._store.upkeep.elect(
                self.name, round(self._elected_seconds * 1000), "recorder"
            )
            self.is_elected = elected == self.name
            if not self.is_elected:
                return 0
            self._elected_at = now
        count = await self._recorder.run_once()
        if not count and now - self._trimmed_at > TRIM_SECONDS:
            self._trimmed_at = now
            await self._recorder.trim()
        if now - self._copied_at > COPY_SECONDS:
            self._copied_at = now
            await self._definitions.run_once()
        if now >= self._prune_at:
            await self._prune(now)
        return count

    async def _prune(self, now: float) -> None:
        """One batch, between two rounds of recording."""
        deleted = await prune(self._history, self._keep, await self._store.estimates.now())
        self._prune_at = now if deleted >= AT_ONCE else now + PRUNE_SECONDS
        if 0 < deleted < AT_ONCE:
            await self._history.database.give_back()

    def _say(self, problem: FairleadError | None) -> None:
        """Once for each kind of trouble."""
        trouble = problem.code if problem else ""
        if problem and trouble != self._trouble:
            report: Callable[..., None] = log.error if isinstance(problem, HistoryTooNew) else log.warning
            report("history_waits", code=trouble, problem=str(problem))
        elif self._trouble and not trouble:
            log.info("history_resumed")
        if trouble != self._trouble:
            self._tell(str(problem or ""))
        self._trouble = trouble
