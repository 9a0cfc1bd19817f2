"""The process that makes forecasts: it runs beside the server process that was elected to do the upkeep.

A forecast takes a processor up to half a second at a time: in this process, requests would wait for that.
"""

import asyncio
import contextlib
from collections.abc import Sequence

import msgspec

from fairlead.clock import monotonic
from fairlead.log.events import EventLog
from fairlead.store.store import Store
from fairlead.upkeep.caretaker import Caretaker
from fairlead.worker.child_process import start_child

LOOK_SECONDS = 0.5
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds; a server that lives for a moment needs no forecast

log = EventLog("fairlead.api")


class Order(msgspec.Struct):
    """A namespace to forecast; not an argument, because a URL may hold a password."""

    url: str
    namespace: str
    who: str


class Estimating:
    """One process for all namespaces whose caretakers are elected here."""

    def __init__(self, posts: Sequence[tuple[Store, Caretaker]]) -> None:
        self._posts = posts

    async def run(self) -> None:
        """Until cancelled. A process that ends is replaced as long as a caretaker is elected."""
        pause = FIRST_PAUSE
        while True:
            await asyncio.sleep(pause)
            if self._orders():
                pause = await self._one_life(pause)

    def _orders(self) -> list[Order]:
        return [
            Order(store.url, store.connection.keys.namespace, caretaker.name)
            for store, caretaker in self._posts
            if caretaker.is_elected
        ]

    async def _one_life(self, pause: float) -> float:
        """How long to wait before the next; longer each time if processes die soon."""
        began = monotonic()
        try:
            code = await self._serve_one()
        except (OSError, RuntimeError) as problem:  # no room for a process, file or thread: perhaps later
            log.error("estimator_not_started", problem=str(problem))
        else:
            if not self._orders():
                return FIRST_PAUSE
            log.error("estimator_ended", exit_code=code)
        return FIRST_PAUSE if monotonic() - began > LONGEST_PAUSE else min(LONGEST_PAUSE, 2 * pause)

    async def _serve_one(self) -> int:
        process, pipe = await start_child("fairlead.api.estimator_process")
        try:
            ended, sent = asyncio.ensure_future(process.wait()), list[Order]()
            while (orders := self._orders()) and not ended.done():
                if orders != sent:
                    pipe.send(orders)
                    sent = orders
                await asyncio.wait({ended}, timeout=LOOK_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                process.kill()
            await pipe.close()
            code = await process.wait()
        return code
