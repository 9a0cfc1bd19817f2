"""A worker's registration in the store, and its calls, which are repeated until the store has answered."""

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

import uuid_utils

from fairlead import __version__
from fairlead.backend import Backend
from fairlead.errors import (
    FairleadError,
    InvalidInput,
    NotAllowed,
    SchemaTooNew,
    StoreLost,
    StoreUnavailable,
    UnknownWorker,
)
from fairlead.log.events import EventLog
from fairlead.worker.options import WorkerOptions

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts to reach the store

T = TypeVar("T")
log = EventLog("fairlead.worker")


class Registration:
    """`declare` is called before the worker registers again, because the store may have lost its data."""

    def __init__(
        self,
        backend: Backend,
        task_types: Collection[str],
        options: WorkerOptions,
        declare: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._backend = backend
        self._task_types = task_types
        self._capabilities = options.capabilities
        self._declare = declare
        settings = backend.settings.worker
        self.capacity = settings.capacity if options.capacity is None else options.capacity
        self._reserve = settings.reserve if options.reserve is None else options.reserve
        self._name = options.name or re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname())[:80]
        self.worker_id = f"{self._name[:80]}-{uuid_utils.uuid7()}"

    async def register(self) -> None:
        await self._backend.workers.register(
            self.worker_id,
            capabilities=self._capabilities,
            task_types=self._task_types,
            capacity=self.capacity,
            reserve=self._reserve,
            name=self._name,
            version=__version__,
        )

    async def register_again(self) -> None:
        """The store has forgotten the worker, and perhaps what it had declared."""
        if self._declare:
            await self._declare()
        await self.register()

    async def until_answered(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeats the call until the store has answered. Meanwhile nothing is given up; leases may end."""
        pause, lost = FIRST_PAUSE, False
        while True:
            try:
                if lost:  # opened again: it may know neither this worker nor what was declared
                    await self.register_again()
                    lost = False
                return await call()
            except (InvalidInput, NotAllowed, SchemaTooNew):  # however often it is asked
                raise
            except UnknownWorker:  # given up as dead, or the store has forgotten it
                log.warning("register_again", worker=self.worker_id)
                await self.until_answered(self.register_again)
            except StoreLost as problem:
                # a store in this process has a monitor, which reports it
                if not lost and self._backend.settings.engine.is_gateway:
                    log.error("store_lost", worker=self.worker_id, problem=str(problem))
                lost = True
            except StoreUnavailable as problem:
                if pause == FIRST_PAUSE:
                    log.warning("store_unavailable", worker=self.worker_id, problem=str(problem))
                with contextlib.suppress(FairleadError):  # the next attempt shows whether it helped
                    await self._backend.reopen()
            except FairleadError as problem:
                log.error("store_fault", worker=self.worker_id, problem=str(problem))
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 1.5)
