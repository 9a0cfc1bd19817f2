"""The worker of a server process that calls the services of the settings."""

import asyncio

from fairlead.settings import Settings
from fairlead.store.store import Store
from fairlead.worker.services import running_services
from fairlead.worker.signals import StopRequest
from fairlead.worker.worker import Worker


class ServiceCalls:
    def __init__(self, store: Store, settings: Settings, stop: StopRequest) -> None:
        self.started = asyncio.Event()  # the worker has registered, or failed to start
        self._store = store
        self._settings = settings
        self._stop = stop
        self._worker: Worker | None = None
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Runs until cancelled; raises the error that ended the worker. A drained one is not replaced."""
        self._ended.clear()
        # the gateway serves even if the store has lost its data, to report that: the worker waits by itself
        wait = self._store.connection.membership.problem is None
        calling = running_services(self._store, self._settings, grace=self._stop.grace, wait=wait)
        try:
            async with calling as self._worker:
                self.started.set()
                draining = asyncio.create_task(self._drain_when_asked(self._worker))
                try:
                    await self._worker.ended.wait()
                finally:
                    draining.cancel()
                if self._worker.lost_heartbeat:
                    raise RuntimeError("the heartbeat of the worker that calls the services has ended")
        finally:
            self._worker = None
            self._ended.set()
            self.started.set()
        await asyncio.Event().wait()

    async def drain(self) -> None:
        """Returns when calls under way have ended, or were given back after the grace."""
        if self._worker:
            self._worker.drain()
            await self._ended.wait()

    async def _drain_when_asked(self, worker: Worker) -> None:
        await self._stop.requested.wait()
        worker.drain()
        await self._stop.hurried.wait()
        worker.drain(0)
