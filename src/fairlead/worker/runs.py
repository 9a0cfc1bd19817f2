"""What a worker has in hand: the runner adds to it, the claimer reports it, the worker watches its leases."""

import asyncio

from fairlead.model.reports import Failed
from fairlead.worker.context import HandlerMessage
from fairlead.worker.failures import log_failure
from fairlead.worker.outcome import Report, Stop
from fairlead.worker.pipe import Pipe
from fairlead.worker.progress import ProgressBuffer
from fairlead.worker.run import Run


class Runs:
    """The runs of a worker, and what the store does not know of them yet. `pipe` leads to the heartbeat."""

    def __init__(self, worker: str, pipe: Pipe) -> None:
        self.running: dict[int, Run] = {}  # by fence: a task may be here twice, its older run being stopped
        self.reports: list[Report] = []  # of those that have ended
        self.progress = ProgressBuffer()
        self.changed = asyncio.Event()
        self.worker = worker
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()
        self._wakes = False  # a handler sent a message, and the loop will look at it soon

    def add(self, run: Run) -> None:
        self.running[run.task.fence] = run
        if run.apart:
            self.show_life()

    def end(self, run: Run, report: Report) -> None:
        del self.running[run.task.fence]
        if isinstance(report, Failed):
            log_failure(run.task, report, self.worker, run.facts)
        self.report(report)

    def report(self, report: Report) -> None:
        self.reports.append(report)
        self.changed.set()

    def stop(self, why: Stop, task_id: str | None = None) -> None:
        """All of them, or those of one task."""
        for run in self.running.values():
            if task_id in (None, run.task.task_id):
                run.stop(why)

    def call_for_frames(self, task_id: str) -> None:
        """A client has sent some."""
        for run in self.running.values():
            if run.frames and run.task.task_id == task_id:
                run.frames.call()

    def show_life(self) -> None:
        """Also says which runs are not in this process: if it dies, they did not kill it."""
        apart = [(run.task.task_id, run.task.fence) for run in self.running.values() if run.apart]
        self._pipe.send({"alive": True, "apart": apart})

    def hear(self, run: Run, message: HandlerMessage) -> None:
        """From any thread; in order, and before the end of the run that sent it."""
        # kept here and now: however much a handler emits before it yields to the loop, it is bounded
        self.progress.add(run, message)
        if not self._wakes:
            self._wakes = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._wakes = False
        self.changed.set()

    def has_room(self, run: Run) -> bool:
        """Whether a handler may send more. One that is stopped does not wait for that."""
        return run.stop_asked_at is not None or not self.progress.is_full(run)
