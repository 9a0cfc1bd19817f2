"""What handlers said while they ran, on its way to the store: gathered per run, told in one trip."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairlead.clock import monotonic
from fairlead.door import Door
from fairlead.errors import FairleadError, StoreFull, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.store.reports import MOST_CHUNKS, Grant, Progress
from fairlead.worker.context import Said
from fairlead.worker.runner import Run

log = EventLog("fairlead.worker")


@dataclass
class Saying:
    run: Run
    fraction: float | None = None
    message: str = ""
    chunks: deque[Any] = field(default_factory=lambda: deque(maxlen=MOST_CHUNKS))  # as the store keeps
    last: int = 0  # the number of the last chunk in its run
    extend_seconds: float | None = None

    def add(self, later: "Saying") -> None:
        """What was said after this."""
        self.chunks.extend(later.chunks)
        self.last = max(self.last, later.last)
        if later.fraction is not None:
            self.fraction, self.message = later.fraction, later.message
        self.extend_seconds = max(self.extend_seconds or 0.0, later.extend_seconds or 0.0)

    def report(self) -> Progress:
        task = self.run.task
        chunks = list(self.chunks)
        # numbered, so that those whose answer was lost are not kept twice
        first = self.last - len(chunks) + 1 if chunks else None
        return Progress(task.task_id, task.fence, self.fraction, self.message, chunks, first)


class Sayings:
    """`extended` is told of each run that got more time: its new deadline here, and in ms of the store."""

    def __init__(self, door: Door, worker: str, extended: Callable[[Run, float, int], None]) -> None:
        self._door = door
        self._worker = worker
        self._extended = extended
        self._waiting: dict[int, Saying] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, run: Run, said: Said) -> None:
        saying = self._waiting.setdefault(run.task.fence, Saying(run))
        if said.kind == "output":
            run.emitted += 1
            saying.chunks.append(said.value)
            saying.last = run.emitted
        elif said.kind == "progress":
            saying.fraction, saying.message = said.value, said.message
        else:
            saying.extend_seconds = max(saying.extend_seconds or 0.0, said.value)

    async def tell(self) -> None:
        """All of it. What could not be told is kept."""
        waiting, self._waiting = self._waiting, {}
        try:
            for saying in waiting.values():
                if saying.extend_seconds:
                    await self._extend(saying)
            reports = [one.report() for one in waiting.values() if one.chunks or one.fraction is not None]
            answers = await self._door.progress(self._worker, *reports) if reports else []
        except StoreFull:  # results find room where this does not, and must not wait for it
            log.warning("progress_dropped", worker=self._worker, problem="the store is full")
            return
        except StoreUnavailable:
            # chunks may arrive twice if only the answer was lost; their numbers tell
            self._keep(waiting)
            raise
        for report, answer in zip(reports, answers, strict=True):
            if isinstance(answer, FairleadError):
                log.warning("progress_refused", task=report.task_id, problem=str(answer))

    def _keep(self, untold: dict[int, Saying]) -> None:
        """Before what was said meanwhile."""
        for fence, later in self._waiting.items():
            if fence in untold:
                untold[fence].add(later)
            else:
                untold[fence] = later
        self._waiting = untold

    async def _extend(self, saying: Saying) -> None:
        seconds = saying.extend_seconds or 0.0
        task, sent = saying.run.task, monotonic()
        grant = Grant(task.task_id, task.fence)
        try:
            deadline = await self._door.extend(self._worker, grant, round(seconds * 1000))
        except StoreUnavailable:
            raise
        except FairleadError as problem:  # the next heartbeat says why
            log.warning("extend_refused", task=task.task_id, problem=str(problem))
        else:
            self._extended(saying.run, sent + seconds, deadline)
        saying.extend_seconds = None
