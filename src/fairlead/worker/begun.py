"""Which tasks a worker has begun, in memory that it shares with its heartbeat.

A worker whose event loop is blocked cannot answer. Its heartbeat then returns to the queue what the worker
holds and has not begun, and must know what that is without asking. A task must never be given back and begun
as well, so each side writes before it reads: the worker notes the task, then looks whether the register is
closed; the heartbeat closes the register, then reads what was noted. The second of the two sees the first
(docs/decisions/0023-silent-workers.md).
"""

import asyncio
import mmap
import os
import tempfile
from collections.abc import Iterable

from fairlead.backend import Backend
from fairlead.errors import FairleadError, StoreFault, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.model.reports import Grant
from fairlead.worker.pipe import Pipe

CLOSED, OPENED, USED, FIRST = 0, 1, 2, 3  # words; from FIRST on each is a fence, or 0
MOST = 1 << 17  # words, of 8 bytes each; memory that is not used is not taken
FULL = MOST  # in USED: there was no room for all of them, so it is not known what was not begun
MOST_REMEMBERED = 4096
# what a worker noted before it could see that the register is closed can be read then
WRITTEN_SECONDS = 0.02

log = EventLog("fairlead.worker")


class Begun:
    """The register. CLOSED is written by the heartbeat alone, all other words by the worker alone.

    `fd`: a shared file, for a worker and a heartbeat in two processes; it may be closed afterwards.
    """

    def __init__(self, fd: int = -1) -> None:
        self._words = memoryview(mmap.mmap(fd, MOST * 8)).cast("Q")
        self._slots: dict[int, int] = {}  # fence -> its word
        self._free: list[int] = []

    # The worker's side

    def add(self, fence: int) -> bool:
        """Notes that a task is begun. False: the register is closed, so it must not begin yet."""
        if fence not in self._slots:
            self._note(fence)
        return self._words[CLOSED] == self._words[OPENED]

    def _note(self, fence: int) -> None:
        used = self._words[USED]
        slot = self._free.pop() if self._free else FIRST + used
        if slot >= MOST:
            self._words[USED] = FULL
            return
        self._words[slot], self._slots[fence] = fence, slot
        if slot == FIRST + used:
            self._words[USED] = used + 1

    def discard(self, fence: int) -> None:
        """The store knows how it ended."""
        if slot := self._slots.pop(fence, None):
            self._words[slot] = 0
            self._free.append(slot)

    def open(self, closing: int) -> None:
        """Unless it was closed again since."""
        self._words[OPENED] = closing

    # The heartbeat's side

    def close(self) -> int:
        """The number of this closing, which opens it again."""
        self._words[CLOSED] += 1
        return self._words[CLOSED]

    def read(self) -> list[int] | None:
        """The fences of all that were begun and not reported; None: it is not known."""
        used = self._words[USED]
        return None if used >= FULL else [fence for fence in self._words[FIRST : FIRST + used] if fence]


class Gate:
    """Lets a worker begin a task, unless its heartbeat has given the task back meanwhile."""

    def __init__(self, begun: Begun) -> None:
        self.begun = begun
        self._resumed = asyncio.Event()
        self._given_back: dict[int, None] = {}  # the latest fences, in order

    async def passes(self, fence: int) -> bool:
        while not self.begun.add(fence):
            await self._resumed.wait()
        return fence not in self._given_back

    def resume(self, closing: int, given_back: Iterable[int]) -> None:
        """The heartbeat hears from us again. First what it gave back, then the gate opens."""
        self._given_back.update(dict.fromkeys(given_back))
        while len(self._given_back) > MOST_REMEMBERED:
            del self._given_back[next(iter(self._given_back))]
        self.begun.open(closing)
        self._resumed.set()
        self._resumed.clear()


class Silence:
    """Gives back what the worker has not begun, until it answers again."""

    def __init__(self, backend: Backend, pipe: Pipe, begun: Begun) -> None:
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


def shared_file() -> int:
    """A file descriptor for a register of two processes; the file has no name."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("fairlead-begun")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.truncate(fd, MOST * 8)
    return fd
