"""A run: one task in a worker's hands, from its claim to its report."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.clock import monotonic
from fairlead.log.events import Fact
from fairlead.model.task import Task
from fairlead.worker.context import Context
from fairlead.worker.handler import Handler, RunIn
from fairlead.worker.outcome import Stop


def _nothing(*_: Any) -> None:
    """There is no handler to stop or to inform yet."""


@dataclass(eq=False, slots=True)
class Run:
    """Times are monotonic."""

    task: Task
    handler: Handler
    claimed_at: float  # when its claim was answered
    lease_ends: float
    place: RunIn = field(init=False)
    suspect: bool = field(init=False)  # it may have killed a worker
    apart: bool = field(init=False)  # it runs in another process: if this one dies, it is not its doing
    why: Stop | None = None
    emitted: int = 0  # chunks of output
    dropped: int = 0  # of them, because they were more than could be sent
    facts: Mapping[str, Fact] = field(default_factory=dict)  # of its failure, for the log
    stop_asked_at: float | None = None
    deadline: float = 0.0
    timer: asyncio.TimerHandle | None = None  # None: it has not started, or has ended
    context: Context | None = None
    halt: Callable[[], Any] = _nothing  # stops the handler, as its place can
    inform: Callable[[int], Any] = _nothing  # sends a handler in another process its new deadline

    def __post_init__(self) -> None:
        self.place = self.handler.run_in
        self.suspect = self.task.crash_count + self.task.loss_count > 0 and self.handler.can_run_apart
        self.apart = self.suspect or self.place == "process"

    def stop(self, why: Stop) -> None:
        """Asks the handler to stop. A second reason does not replace the first."""
        if self.stop_asked_at is None:
            self.why = why
            self.stop_asked_at = monotonic()
            if self.context:
                self.context.cancelled = True
            self.halt()

    def set_deadline(self, deadline: float) -> None:
        """It is stopped then."""
        self.deadline = deadline
        delay = max(0.0, deadline - monotonic())  # the loop's own clock may be another one
        self.timer = asyncio.get_running_loop().call_later(delay, self.stop, Stop.TIMEOUT)

    def extend(self, deadline: float, deadline_ms: int) -> None:
        """It got more time, or had more: then the deadline is an earlier one."""
        if self.timer is None:  # it has ended meanwhile, and its process may run another
            return
        self.timer.cancel()
        self.set_deadline(max(deadline, self.deadline))
        if self.context:
            self.context.deadline_ms = deadline_ms
        self.inform(deadline_ms)

    def end(self) -> None:
        if self.timer:
            self.timer.cancel()
            self.timer = None
