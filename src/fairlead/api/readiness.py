"""Why this server is not ready, as /readyz shows it, and the watch over the store's server."""

import asyncio
import contextlib

from fairlead.api.problems import NotReady
from fairlead.errors import FairleadError
from fairlead.log.events import EventLog
from fairlead.store.engine.state import (
    DISK,
    EVICTS,
    FAILED,
    LACKS_REPLICAS,
    REPLICA,
    TRUNCATED,
    look,
    problem_behind,
)
from fairlead.store.store import Store

EVERY_SECONDS = 2.0
MAKE_ROOM = "finished tasks are forgotten early: raise maxmemory, or keep less (retention, outbox.max_events)"

log = EventLog("fairlead.api")


class Readiness:
    """The component that finds a reason sets it and clears it; several may exist at once."""

    def __init__(self, namespace: str = "") -> None:
        self._reasons: dict[str, str] = {}
        self._facts = {"namespace": namespace} if namespace else {}  # where there are several
        self._warnings: dict[str, str] = {}

    @property
    def warnings(self) -> dict[str, str]:
        """Code -> what an operator has to see to, although this server is ready."""
        return dict(self._warnings)

    def warn(self, code: str, message: str | None) -> None:
        """Until it is None. Logged when it is new."""
        if message is None:
            if self._warnings.pop(code, None) is not None:
                log.info("warning_cleared", warning=code)
            return
        if code not in self._warnings:
            log.error("warned", warning=code, problem=message)
        self._warnings[code] = message

    @property
    def reasons(self) -> dict[str, str]:
        """Code -> what is wrong and what to do, oldest first."""
        return dict(self._reasons)

    def refuse(self, code: str, message: str) -> None:
        """Not ready because of this, until it is cleared. Logged when it is new."""
        if code not in self._reasons:
            log.error("not_ready", reason=code, problem=message, **self._facts)
        self._reasons[code] = message

    def clear(self, code: str) -> None:
        if self._reasons.pop(code, None) is not None:
            log.info("reason_cleared", reason=code, ready=not self._reasons, **self._facts)

    def note_background(self, work: str, failing: bool) -> None:
        """For work in the background that fails repeatedly (`keep_running`)."""
        code = f"{work}_failing"
        if failing:
            self.refuse(code, f"{work} fails again and again: see background_failed in the server's log")
        else:
            self.clear(code)

    def check(self) -> None:
        """Raises NotReady with all reasons."""
        if self._reasons:
            raise NotReady(self.reasons)


class ServerWatch:
    """Checks the store's server every few seconds: its configuration may have changed."""

    def __init__(self, store: Store, readiness: Readiness) -> None:
        self._store = store
        self._readiness = readiness
        self._is_pressed = False

    async def run(self) -> None:
        """Runs until cancelled. While the store does not answer, the last result counts."""
        while True:
            with contextlib.suppress(FairleadError):
                await self.look()
            await asyncio.sleep(EVERY_SECONDS)

    async def look(self) -> None:
        """An embedded server that has ended cannot be asked, but its log says why."""
        found = dict(self._store.engine_problems())
        for reason, problem in found.items():
            self._readiness.refuse(reason, problem)
        found |= await self._ask()
        for reason in (EVICTS, REPLICA, LACKS_REPLICAS, DISK, FAILED, TRUNCATED):
            if reason in found:
                self._readiness.refuse(reason, found[reason])
            else:
                self._readiness.clear(reason)
        await self._store.policy.watch()

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
