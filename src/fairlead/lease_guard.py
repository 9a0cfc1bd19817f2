"""A lease that is kept while a block of code runs."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from fairlead.clock import monotonic
from fairlead.errors import FairleadError, Fenced, LeaseLost, SlotStoreUnavailable, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of

L = TypeVar("L")

log = EventLog("fairlead.acquire")


class Leases(Protocol[L]):
    """Where they come from. Both raise Fenced for a lease that is no longer ours."""

    async def renew(self, lease: L, lease_ms: int) -> L: ...

    async def release(self, lease: L) -> None: ...


class LeaseGuard(Generic[L]):
    """`async with fl.acquire("gpu", wait=30) as lease:`. The lease is renewed until the block ends.

    If it cannot be kept, the block is cancelled before another holder may have the units: LeaseLost.
    """

    def __init__(
        self, leases: Leases[L], acquire: Callable[[], Awaitable[L]], lease_ms: int, name: str
    ) -> None:
        """`name`: of what is held, for the log."""
        self._leases = leases
        self._acquire_lease = acquire
        self._lease_ms = lease_ms
        self._name = name
        self._lost = False

    async def __aenter__(self) -> L:
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
                return  # it was cancelled from elsewhere too
            raise LeaseLost() from problem
        try:
            await asyncio.wait({self._renewing})
        finally:
            await self._release(kind)

    async def _release(self, kind: type[BaseException] | None) -> None:
        try:
            await self._leases.release(self._lease)
        except (Fenced, StoreUnavailable, SlotStoreUnavailable):
            # It ended just now, or the store cannot be reached: then it ends by itself. It was in time.
            if kind is None and monotonic() > self._ends:
                raise LeaseLost() from None

    async def _acquire(self) -> tuple[L, float]:
        sent = monotonic()
        lease = await self._acquire_lease()
        if monotonic() - sent > self._lease_ms / 6000:  # it is not known for how long it has been ours
            sent = monotonic()
            lease = await self._leases.renew(lease, self._lease_ms)
        return lease, sent + self._lease_ms / 1000

    async def _renew(self) -> None:
        pause = self._lease_ms / 3000
        to_stop = pause / 2  # the time that is left to the block when it is stopped
        while True:
            await asyncio.sleep(min(pause, self._ends - to_stop - monotonic()))
            sent = monotonic()
            try:
                # however long the store's own calls wait
                async with asyncio.timeout(self._ends - to_stop - sent):
                    await self._leases.renew(self._lease, self._lease_ms)
                self._ends = sent + self._lease_ms / 1000
            except Fenced:
                break
            except (FairleadError, TimeoutError):
                if monotonic() >= self._ends - to_stop:
                    break
            except Exception as problem:  # else the block would continue without renewals of the lease
                log.error("renewal_failed", limit=self._name, traceback=traceback_of(problem))
                break
        self._lost = True
        assert self._block
        self._block.cancel()
