"""A process beside this server, for work that takes a processor for long: requests would wait for it here.

It works for all namespaces whose caretakers are elected in this server.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from fairlead.clock import monotonic
from fairlead.log.events import EventLog
from fairlead.settings import EngineSettings, Settings
from fairlead.store.store import Store
from fairlead.worker.child_process import start_child
from fairlead.worker.pipe import MessagePipe

LOOK_SECONDS = 0.5
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds; a server that lives for a moment needs none

log = EventLog("fairlead.api")


class Order(msgspec.Struct):
    """What to do for a namespace; not an argument, because a URL may hold a password."""

    url: str
    namespace: str
    replicas: int

    def connect(self) -> Store:
        """With nothing of the settings but where the data is, and what a change of it needs."""
        engine = EngineSettings(url=self.url, replicas=self.replicas)
        return Store.connect(self.url, self.namespace, Settings(engine=engine))


class SideProcess:
    """`name` is what it is, in the log; `hear` is given what it sends back."""

    def __init__(
        self,
        name: str,
        module: str,
        orders: Callable[[], Sequence[Order]],
        hear: Callable[[Any], None] = lambda message: None,
    ) -> None:
        self._name, self._module = name, module
        self._orders, self._hear = orders, hear

    async def run(self) -> None:
        """Until cancelled. A process that ends is replaced as long as there are orders for it."""
        pause = FIRST_PAUSE
        while True:
            await asyncio.sleep(pause)
            if self._orders():
                pause = await self._one_life(pause)

    async def _one_life(self, pause: float) -> float:
        """How long to wait before the next; longer each time if processes die soon."""
        began = monotonic()
        try:
            code = await self._serve_one()
        except (OSError, RuntimeError) as problem:  # no room for a process, file or thread: perhaps later
            log.error(f"{self._name}_not_started", problem=str(problem))
        else:
            if not self._orders():
                return FIRST_PAUSE
            log.error(f"{self._name}_ended", exit_code=code)
        return FIRST_PAUSE if monotonic() - began > LONGEST_PAUSE else min(LONGEST_PAUSE, 2 * pause)

    async def _serve_one(self) -> int:
        process, pipe = await start_child(self._module)
        listening = asyncio.create_task(self._listen(pipe))
        try:
            ended, sent = asyncio.ensure_future(process.wait()), list[Order]()
            while (orders := list(self._orders())) and not ended.done():
                if orders != sent:
                    pipe.send(orders)
                    sent = orders
                await asyncio.wait({ended}, timeout=LOOK_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                process.kill()
            await pipe.close()
            code = await process.wait()
            await listening
        return code

    async def _listen(self, pipe: MessagePipe) -> None:
        async for message in pipe:
            self._hear(message)
