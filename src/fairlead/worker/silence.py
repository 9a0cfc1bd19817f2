"""Relieves a worker that lives and does not answer (docs/decisions/0023-silent-workers.md)."""

import asyncio

from fairlead.backend import Backend
from fairlead.errors import FairleadError, StoreFault, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.model.reports import Grant
from fairlead.worker.begun import Begun
from fairlead.worker.pipe import MessagePipe

# what a worker noted before it could see that the register is closed can be read then
WRITTEN_SECONDS = 0.02

log = EventLog("fairlead.worker")


class Silence:
    """Gives back what the worker has not begun, until it answers again."""

    def __init__(self, backend: Backend, pipe: MessagePipe, begun: Begun) -> None:
        self._backend = backend
        self._pipe = pipe
        self._begun = begun
        self._closing: int | None = None  # None: it answers
        self._request: int | None = None  # one that was not answered: it may have given something back
        self._given_back: list[Grant] = []

    async def relieve(self, worker: str) -> None:
        if self._closing is None:
            log.warning("worker_silent", worker=worker, problem="its event loop does not answer")
        self._closing = self._begun.close()
        await asyncio.sleep(WRITTEN_SECONDS)
        begun = self._begun.read()
        if begun is None:
            return
        self._request = self._request or self._closing
        try:
            given_back = await self._backend.workers.stall(worker, str(self._request), begun)
        except (StoreUnavailable, StoreFault) as problem:
            log.warning("stall_failed", worker=worker, problem=str(problem))
            return
        except FairleadError as refusal:  # nothing was given back
            log.warning("stall_refused", worker=worker, problem=str(refusal))
            given_back = []
        self._request = None
        self._given_back += given_back
        for grant in given_back:
            log.warning("given_back", worker=worker, task=grant.id, fence=grant.fence, problem="not begun")

    async def end(self, worker: str) -> None:
        """It answers: from now on it may begin what it still holds."""
        if self._request is not None:
            await self.relieve(worker)
        if self._closing is not None and self._request is None:
            fences = [grant.fence for grant in self._given_back]
            self._pipe.send({"resumed": self._closing, "given_back": fences})
            self._closing, self._given_back = None, []
            log.info("worker_answers", worker=worker)
