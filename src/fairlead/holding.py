"""A limit without a task: hold some of its units while a block of code runs."""

import asyncio
import contextlib
import random
from types import TracebackType

from fairlead.clock import monotonic
from fairlead.door import Door
from fairlead.errors import FairleadError, Fenced, LeaseLost, LimitFull, StoreUnavailable
from fairlead.store.limits import Lease

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5  # seconds between two attempts to get units


class Holding:
    """`async with fl.acquire("gpu", wait=30) as lease:`. The lease is renewed until the block ends.

    If it cannot be kept, the block is cancelled before somebody else may have the units: LeaseLost.
    """

    def __init__(self, door: Door, limit: str, units: int, wait: float, lease_ms: int, holder: str) -> None:
        self._door = door
        self._limit = limit
        self._units = units
        self._wait = wait
        self._lease_ms = lease_ms
        self._holder = holder
        self._lost = False

    async def __aenter__(self) -> Lease:
        self._lease, self._ends = await self._acquire()
        self._block = asyncio.current_task()
        self._renewing = asyncio.create_task(self._renew())
        return self._lease

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, _: TracebackType | None
    ) -> None:
        self._renewing.cancel()
        if self._lost:
            assert self._block
            if self._block.uncancel() and kind is asyncio.CancelledError:
                return  # somebody else has cancelled it too
            raise LeaseLost() from problem
        try:
            await asyncio.wait({self._renewing})
        finally:
            await self._release(kind)

    async def _release(self, kind: type[BaseException] | None) -> None:
        try:
            await self._door.limits.release(self._lease)
        except (Fenced, StoreUnavailable):
            # It ended just now, or nobody can be told: then it ends by itself. The block was done in time.
            if kind is None and monotonic() > self._ends:
                raise LeaseLost() from None

    async def _acquire(self) -> tuple[Lease, float]:
        give_up, pause = monotonic() + self._wait, FIRST_PAUSE
        while True:
            sent = monotonic()
            try:
                lease = await self._ask()
            except LimitFull:
                if sent >= give_up:
                    raise
            else:
                return lease, sent + self._lease_ms / 1000
            # uneven, so that those who wait do not ask all at once
            await asyncio.sleep(min(pause * random.uniform(0.5, 1.5), max(0.0, give_up - monotonic())))
            pause = min(LONGEST_PAUSE, pause * 1.5)

    async def _ask(self) -> Lease:
        asking = asyncio.create_task(
            self._door.limits.acquire(
                self._limit, units=self._units, lease_ms=self._lease_ms, holder=self._holder
            )
        )
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            with contextlib.suppress(FairleadError):  # it may have them already: nobody would give them back
                await self._door.limits.release(await asking)
            raise

    async def _renew(self) -> None:
        pause = self._lease_ms / 3000
        to_stop = pause / 2  # the time that is left to the block when it is stopped
        while True:
            await asyncio.sleep(min(pause, self._ends - to_stop - monotonic()))
            sent = monotonic()
            try:
                # however patient the store's own calls are
                async with asyncio.timeout(self._ends - to_stop - sent):
                    await self._door.limits.renew(self._lease, self._lease_ms)
                self._ends = sent + self._lease_ms / 1000
            except Fenced:
                break
            except (FairleadError, TimeoutError):
                if monotonic() >= self._ends - to_stop:
                    break
        self._lost = True
        assert self._block
        self._block.cancel()
