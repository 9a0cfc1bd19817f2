"""The overview of a namespace for everybody who watches it: read once a second, however many they are."""

import asyncio
from collections.abc import AsyncGenerator

import msgspec

from fairlead.background import keep_running
from fairlead.clock import monotonic
from fairlead.errors import FairleadError
from fairlead.model.overview import Overview
from fairlead.shapes.overview import OverviewAnswer
from fairlead.store.store import Store

PAUSE = 1.0  # seconds between two looks, and so at least between two messages
QUIET = 5.0  # seconds after which a message is sent even if nothing has changed


class Overviews:
    """By tenant (None: of all). A watcher that reads slowly misses messages: each replaces those before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rounds: dict[str | None, _Round] = {}

    async def messages(self, tenant: str | None, most: int = 0) -> AsyncGenerator[bytes]:
        """Until the watcher leaves, or has got this many (0: any number)."""
        watched = self._rounds.get(tenant)
        if watched is None:
            watched = self._rounds[tenant] = _Round(self._store, tenant)
        watched.enter()
        seen = sent = 0
        try:
            while not most or sent < most:
                seen, message = await watched.after(seen)
                yield message
                sent += 1
        finally:
            if watched.leave():
                self._rounds.pop(tenant, None)


class _Round:
    """Looks again and again while somebody watches."""

    def __init__(self, store: Store, tenant: str | None) -> None:
        self._store = store
        self._tenant = tenant
        self._watchers = 0
        self._message = b""
        self._number = 0
        self._news = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    def enter(self) -> None:
        self._watchers += 1
        if self._looking is None:
            self._looking = asyncio.create_task(keep_running("overview", self._look))

    def leave(self) -> bool:
        """Whether that was the last."""
        self._watchers -= 1
        if self._watchers == 0 and self._looking:
            self._looking.cancel()
        return self._watchers == 0

    async def after(self, seen: int) -> tuple[int, bytes]:
        """The latest message and its number, once it is not this one."""
        while seen == self._number:
            await self._news.wait()
        return self._number, self._message

    async def _look(self) -> None:
        last: Overview | None = None
        sent_at = -QUIET
        while True:
            began = monotonic()
            try:
                overview = await self._store.overviews.get(self._tenant)
            except FairleadError:  # watchers notice the silence; their other requests get the error
                await asyncio.sleep(PAUSE)
                continue
            if last is None or overview.version != last.version or began - sent_at >= QUIET:
                last, sent_at = overview, began
                self._send(msgspec.json.encode(OverviewAnswer.from_value(overview)))
            await asyncio.sleep(max(0.0, PAUSE - (monotonic() - began)))

    def _send(self, message: bytes) -> None:
        self._message = b"event: OVERVIEW\ndata: %b\n\n" % message
        self._number += 1
        news, self._news = self._news, asyncio.Event()
        news.set()
