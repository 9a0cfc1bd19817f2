"""Watches, while a process runs, whether the store still has the data that the process knows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fairlead.background import in_background
from fairlead.errors import FairleadError, StoreLost, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.store.epochs import SEALED_WHEN
from fairlead.store.store import Store

EVERY_SECONDS = 1.6  # a loss is noticed within two, and many processes that have nothing to do cost little

NAMED_AT_ONCE = 10  # in a line of the log

log = EventLog("fairlead.store")


class Monitor:
    """Reports a loss once, closes the namespace to everybody, and joins it again when it was accepted."""

    def __init__(
        self,
        store: Store,
        report: Callable[[StoreLost | None], Awaitable[None]] | None = None,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._store = store
        self._report = report or self._log
        self._every_seconds = every_seconds
        self._standing = ""  # of the loss that was reported
        self._complaint = ""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.check()
            except StoreUnavailable:
                pass  # callers notice it themselves
            except FairleadError as problem:
                self._complain(problem)
            await asyncio.sleep(self._every_seconds)

    @asynccontextmanager
    async def watching(self, join: Callable[[], Awaitable[None]], *, waits: bool) -> AsyncIterator[None]:
        """Joined, and joined again when an operator has accepted the namespace after a loss.

        `waits`: a namespace that is lost already is waited for.
        """
        self._store.rejoin = join
        await (self.joined() if waits else join())
        self._store.remember()
        async with in_background({"loss_watch": self.run}):
            yield

    async def joined(self) -> None:
        """Waits until this process has joined the namespace; raises any other problem."""
        while True:
            try:
                await self._store.rejoin()
                await self._found()
                return
            except StoreLost as problem:
                await self._lost(problem)
            await asyncio.sleep(self._every_seconds)

    async def check(self) -> None:
        try:
            await self._store.epochs.check()
            if self._standing or not self._store.is_joined:
                await self._store.rejoin()
        except StoreLost as problem:
            if problem.standing != "reopened":
                await self._lost(problem)
                return
            await self._store.rejoin()
        await self._found()

    async def _lost(self, problem: StoreLost) -> None:
        if self._standing != problem.standing:
            await self._report(problem)
        self._standing = problem.standing or "lost"
        if problem.standing in SEALED_WHEN:
            with contextlib.suppress(FairleadError):
                await self._store.epochs.seal()

    async def _found(self) -> None:
        if self._standing:
            await self._report(None)
            await self._list_missing()
        self._standing = self._complaint = ""
        self._store.is_joined = True
        self._store.remember()

    async def _list_missing(self) -> None:
        """Work that this process has accepted, and that the loss has taken: nothing is lost in silence."""
        known_elsewhere = self._store.known_elsewhere
        missing = await known_elsewhere(await self._store.acceptance.missing())
        if missing:
            log.error("accepted_work_missing", count=len(missing), next_step="submit it again")
        for first in range(0, len(missing), NAMED_AT_ONCE):
            some = missing[first : first + NAMED_AT_ONCE]
            log.error("missing", ids=" ".join(f"{kind}:{one}" for kind, one in some))

    def _complain(self, problem: FairleadError) -> None:
        """It cannot join: what it declares is refused, say. Once, not at each attempt."""
        if (words := str(problem)) != self._complaint:
            log.error("not_joined", code=problem.code, problem=words)
        self._complaint = words

    async def _log(self, problem: StoreLost | None) -> None:
        if problem and self._standing and problem.standing == "opening":
            return  # the same loss, which was accepted by now
        if problem:
            log.error("store_lost", standing=problem.standing, problem=str(problem))
        else:
            log.warning("store_open_again", namespace=self._store.connection.keys.namespace)
