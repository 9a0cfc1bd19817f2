"""What handlers send while they run, on its way to the store: collected per run, sent in one trip."""

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from fairlead.backend import Backend
from fairlead.clock import monotonic
from fairlead.errors import FairleadError, StoreFull, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.model.reports import MOST_CHUNK_BYTES, MOST_CHUNKS, Grant, Progress
from fairlead.worker.context import HandlerMessage
from fairlead.worker.run import Run

MOST_BYTES = 4 * 1024 * 1024  # of the output of one run that waits to be sent

log = EventLog("fairlead.worker")


@dataclass
class RunProgress:
    run: Run
    fraction: float | None = None
    message: str = ""
    chunks: deque[tuple[Any, int]] = field(default_factory=deque)  # with their sizes
    size: int = 0  # of all chunks, in bytes of JSON
    last: int = 0  # the number of the last chunk in its run
    extend_seconds: float | None = None

    def append(self, chunk: Any, size: int) -> None:
        """Without room for it the oldest go: the store keeps the latest, too."""
        self.chunks.append((chunk, size))
        self.size += size
        while len(self.chunks) > MOST_CHUNKS or (self.size > MOST_BYTES + MOST_CHUNK_BYTES):
            self.size -= self.chunks.popleft()[1]
            self.run.dropped += 1
            if self.run.dropped == 1:
                log.warning("output_dropped", task=self.run.task.task_id, next_step="await ctx.emit(...)")

    def add(self, later: "RunProgress") -> None:
        """What was sent after this."""
        for chunk, size in later.chunks:
            self.append(chunk, size)
        self.last = max(self.last, later.last)
        if later.fraction is not None:
            self.fraction, self.message = later.fraction, later.message
        self.extend_seconds = max(self.extend_seconds or 0.0, later.extend_seconds or 0.0)

    def report(self) -> Progress:
        task = self.run.task
        chunks = [chunk for chunk, _ in self.chunks]
        # numbered, so that those whose answer was lost are not kept twice
        first = self.last - len(chunks) + 1 if chunks else None
        return Progress(task.task_id, task.fence, self.fraction, self.message, chunks, first)


class ProgressBuffer:
    """Collects what handlers send, per run; filled from any thread, and sent by one."""

    def __init__(self) -> None:
        self._waiting: dict[int, RunProgress] = {}
        self._under_way: dict[int, RunProgress] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def is_full(self, run: Run) -> bool:
        """What is under way counts: it comes back if the store cannot be reached."""
        fence = run.task.fence
        with self._lock:
            parts = [some[fence] for some in (self._waiting, self._under_way) if fence in some]
            count, size = sum(len(one.chunks) for one in parts), sum(one.size for one in parts)
        return count >= MOST_CHUNKS or size >= MOST_BYTES

    def add(self, run: Run, message: HandlerMessage) -> None:
        with self._lock:
            self._add(run, message)

    def _add(self, run: Run, message: HandlerMessage) -> None:
        progress = self._waiting.setdefault(run.task.fence, RunProgress(run))
        if message.kind == "output":
            run.emitted += 1
            progress.append(message.value, message.size)
            progress.last = run.emitted
        elif message.kind == "progress":
            progress.fraction, progress.message = message.value, message.message
        else:
            progress.extend_seconds = max(progress.extend_seconds or 0.0, message.value)

    async def send(self, backend: Backend, worker: str) -> None:
        """All of it. What could not be sent is kept."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            self._under_way = waiting
        try:
            for progress in waiting.values():
                if progress.extend_seconds:
                    await _extend(backend, worker, progress)
            reports = [one.report() for one in waiting.values() if one.chunks or one.fraction is not None]
            answers = await backend.progress(worker, *reports) if reports else []
        except StoreFull:  # results find room where this does not, and must not wait for it
            log.warning("progress_dropped", worker=worker, problem="the store is full")
            return
        except StoreUnavailable:
            # chunks may arrive twice if only the answer was lost; their numbers show it
            with self._lock:
                self._keep(waiting)
            raise
        finally:
            self._under_way = {}
        for report, answer in zip(reports, answers, strict=True):
            if isinstance(answer, FairleadError):
                log.warning("progress_refused", task=report.task_id, problem=str(answer))

    def _keep(self, unsent: dict[int, RunProgress]) -> None:
        """Before what was sent meanwhile."""
        for fence, later in self._waiting.items():
            if fence in unsent:
                unsent[fence].add(later)
            else:
                unsent[fence] = later
        self._waiting = unsent


async def _extend(backend: Backend, worker: str, progress: RunProgress) -> None:
    seconds = progress.extend_seconds or 0.0
    task, sent = progress.run.task, monotonic()
    grant = Grant(task.task_id, task.fence)
    try:
        deadline = await backend.extend(worker, grant, round(seconds * 1000))
    except StoreUnavailable:
        raise
    except FairleadError as problem:  # the next heartbeat shows why
        log.warning("extend_refused", task=task.task_id, problem=str(problem))
    else:
        progress.run.extend(sent, seconds, deadline)
    progress.extend_seconds = None
