"""A run: one task in a worker's hands, from its claim to its report."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.clock import monotonic
from fairlead.log.events import Fact
from fairlead.model.task import Task
from fairlead.worker.context import Context
from fairlead.worker.frames import ClientFrames
from fairlead.worker.handler import Handler, RunIn
from fairlead.worker.outcome import Stop

GRACE_SECONDS = 1.0  # past the deadline of its tier, in which what a handler returns still counts


def ignore(*_: Any) -> None:
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
    deadline_ms: int = field(init=False)  # the same by the store's clock
    bounded: bool = field(init=False)  # it is the deadline of its tier
    overdue: bool = False  # that has passed: what the handler returns is truncated
    extended_at: float = 0.0  # when the store's answer came
    shortened_at: float = 0.0
    timer: asyncio.TimerHandle | None = None  # None: it has not started, or has ended
    context: Context | None = None
    frames: ClientFrames | None = None  # of an interactive task
    halt: Callable[[], Any] = ignore  # stops the handler, as its place can
    # sends a handler in another process its deadline by the store's clock, and whether it is overdue
    inform: Callable[[int, bool], Any] = ignore

    def __post_init__(self) -> None:
        self.place = self.handler.run_in
        self.suspect = self.task.crash_count + self.task.loss_count > 0 and self.handler.can_run_apart
        self.apart = self.suspect or self.place == "process"
        self.deadline_ms = self.task.deadline or 0
        self.bounded = self.task.bounded

    def stop(self, why: Stop) -> None:
        """Asks the handler to stop. A second reason does not replace the first."""
        if self.stop_asked_at is None:
            self.why = Stop.DEADLINE if self.overdue and why is Stop.DRAINED else why
            self.stop_asked_at = monotonic()
            if self.context:
                self.context.cancelled = True
            if self.frames:
                self.frames.end()
            self.halt()

    def set_deadline(self, deadline: float) -> None:
        """It is stopped then, or a moment later if this is the deadline of its tier."""
        self.deadline = deadline
        delay = max(0.0, deadline - monotonic())  # the loop's own clock may be another one
        self.timer = asyncio.get_running_loop().call_later(delay, self._reach_deadline)

    def _reach_deadline(self) -> None:
        if not self.bounded:
            self.stop(Stop.TIMEOUT)
        elif self.stop_asked_at is None:
            self.overdue = True
            self.timer = asyncio.get_running_loop().call_later(GRACE_SECONDS, self.stop, Stop.DEADLINE)
            self.tell()

    def extend(self, sent: float, seconds: float, deadline_ms: int) -> None:
        """It got more time, as it requested at `sent`, or had more: then the deadline stays as it is."""
        # It has ended meanwhile, or the answer may be older than a deadline that it was given since.
        if self.timer is None or self.overdue or sent < self.shortened_at:
            return
        self.extended_at = monotonic()
        # the store gives less near the end of the tier
        latest = self.deadline + (deadline_ms - self.deadline_ms) / 1000
        self._move(max(self.deadline, min(sent + seconds, latest)), deadline_ms)

    def shorten(self, deadline_ms: int) -> bool:
        """Its tier now ends at this instant of the store's clock. False: it had no more time than that."""
        if deadline_ms >= self.deadline_ms:
            return False
        self.shortened_at = monotonic()
        earlier = self.deadline - (self.deadline_ms - deadline_ms) / 1000
        if self.overdue:
            self.deadline_ms = deadline_ms
        else:
            self.bounded = True
            self._move(earlier, deadline_ms)
        return True

    def _move(self, deadline: float, deadline_ms: int) -> None:
        assert self.timer
        self.timer.cancel()
        self.deadline_ms = deadline_ms
        self.set_deadline(deadline)
        self.tell()

    def tell(self) -> None:
        """Lets the handler know its deadline, and whether that has passed."""
        if self.context:
            self.context.learn(self.deadline_ms, self.overdue)
        self.inform(self.deadline_ms, self.overdue)

    def end(self) -> None:
        if self.frames:
            self.frames.end()
        if self.timer:
            self.timer.cancel()
            self.timer = None
