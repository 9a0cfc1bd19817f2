"""The process that makes forecasts: it runs beside the server process that was elected to do the upkeep.

A forecast takes a processor up to half a second at a time: in this process, requests would wait for that.
"""

import asyncio
import contextlib

import msgspec

from fairlead.store.store import Store
from fairlead.upkeep.caretaker import Caretaker
from fairlead.worker.child_process import start_child

LOOK_SECONDS = 0.5
SETTLED_SECONDS = 1.0  # a server that lives shorter needs no forecast


class Order(msgspec.Struct):
    """What the process is to do; not an argument, because a URL may hold a password."""

    url: str
    namespace: str
    who: str


class Estimating:
    def __init__(self, store: Store, caretaker: Caretaker) -> None:
        self._store, self._caretaker = store, caretaker

    async def run(self) -> None:
        """Until cancelled. A process that ends is replaced as long as its caretaker is elected."""
        while True:
            await asyncio.sleep(SETTLED_SECONDS)
            if self._caretaker.is_elected:
                await self._one_life()

    async def _one_life(self) -> None:
        process, pipe = await start_child("fairlead.api.estimator_process")
        try:
            namespace = self._store.connection.keys.namespace
            pipe.send(Order(self._store.url, namespace, self._caretaker.name))
            ended = asyncio.ensure_future(process.wait())
            while self._caretaker.is_elected and not ended.done():
                await asyncio.wait({ended}, timeout=LOOK_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                process.kill()
            await pipe.close()
            await process.wait()
