"""What a job is by the book: its steps, its status, its error, without a store, a queue or a script."""

from dataclasses import dataclass, field
from typing import Any

from fairlead.model.job import JobStatus
from fairlead.model.states import TERMINAL, State

RETRIES, CRASHES, LOSSES = 1, 3, 12
LEASE_MS, RETRY_MS = 21_000, 5_000  # with its grace; what every failure asks for
AGE_MS = {2: ((60_000, 1), (180_000, 0)), 1: ((120_000, 0),), 0: ()}  # after this wait: this priority
OPEN = frozenset(State) - TERMINAL


@dataclass
class Step:
    index: int
    stage: int
    state: State | None = None  # None: it was never queued
    retries: int = 0
    crashes: int = 0
    losses: int = 0
    attempts: int = 0
    arrival: int = 0
    until: int = 0  # of its lease, or of its delay
    wait_until: int | None = None
    fence: int = 0
    result: Any = None


@dataclass
class Book:
    """One job; every act gets `now`."""

    base: int
    created: int
    max_wait: int | None
    stages: list[list[Step]]
    status: JobStatus = JobStatus.PENDING
    effective: int = 2
    stage: int = 0
    error: tuple[str, bool, int] | None = None  # code, retryable, step
    ended: list[JobStatus] = field(default_factory=list)  # every time it ended

    @property
    def steps(self) -> list[Step]:
        return [step for stage in self.stages for step in stage]

    @property
    def open_steps(self) -> list[Step]:
        return [step for step in self.steps if step.state in OPEN]

    @property
    def current_step(self) -> int:
        done = self.status is JobStatus.COMPLETED
        return len(self.steps) if done else self.stages[self.stage][0].index

    def begin(self, now: int) -> None:
        self.effective = self.base
        self._queue(self.stages[0], now)

    def _queue(self, steps: list[Step], now: int) -> None:
        for step in steps:
            step.state = State.QUEUED
            step.arrival = self.created if step.index else now
            step.wait_until = self._patience(now)

    def _patience(self, now: int) -> int | None:
        return None if self.max_wait is None else now + self.max_wait

    def claimed(self, step: Step, fence: int, now: int) -> None:
        assert step.state is State.QUEUED and fence > step.fence
        step.state, step.fence, step.until, step.wait_until = State.EXECUTING, fence, now + LEASE_MS, None
        step.attempts = step.retries + step.crashes + step.losses + 1
        self.status = JobStatus.RUNNING

    def completed(self, step: Step, result: Any, now: int) -> None:
        step.state, step.result = State.COMPLETED, result
        if self.open_steps:
            return
        if self.error:
            self._end(JobStatus.FAILED)
        elif self.stage + 1 == len(self.stages):
            self._end(JobStatus.COMPLETED)
        else:
            self.stage += 1
            self._queue(self.stages[self.stage], now)

    def failed(self, step: Step, retriable: bool, now: int) -> None:
        if retriable and step.retries < RETRIES:
            step.retries += 1
            step.state, step.until = State.DELAYED, now + RETRY_MS
        else:
            self._lost(step, State.DEAD_LETTER if retriable else State.FAILED, "oops", retriable)

    def lost_worker(self, step: Step, alone: bool) -> None:
        """A worker that is seen to die while it holds nothing else may have been killed by this step."""
        if alone:
            step.crashes += 1
        else:
            step.losses += 1
        if step.crashes < CRASHES and step.losses < LOSSES:
            step.state = State.QUEUED  # at its old position
        else:
            self._lost(step, State.DEAD_LETTER, "worker_lost", True)

    def released(self, step: Step) -> None:
        step.state = State.QUEUED

    def cancelled(self) -> None:
        for step in self.open_steps:
            step.state = State.CANCELLED
        self._end(JobStatus.CANCELLED)

    def resumed(self, now: int) -> None:
        for step in self.stages[self.stage]:
            if step.state is not State.COMPLETED:
                step.state, step.arrival = State.QUEUED, now
                step.retries = step.crashes = step.losses = 0
                step.wait_until = self._patience(now)
        self.effective, self.error = self.base, None
        started = any(step.attempts for step in self.steps)
        self.status = JobStatus.RUNNING if started else JobStatus.PENDING

    def time_is(self, now: int) -> None:
        """Leases end first, then delays and maximum waits, then waiting tasks age."""
        for step in self.open_steps:
            if step.state is State.EXECUTING and step.until <= now:
                self.lost_worker(step, alone=False)  # all workers registered again: the fleet was down
        for step in self.open_steps:
            if step.state is State.DELAYED and step.until <= now:
                step.state, step.arrival = State.QUEUED, step.until
            if step.state is State.QUEUED and step.wait_until is not None and step.wait_until <= now:
                self._lost(step, State.FAILED, "RESOURCE_EXHAUSTED", True)
        for step in self.open_steps:
            if step.state is State.QUEUED:
                risen = [to for age, to in AGE_MS[self.base] if now - step.arrival >= age]
                self.effective = min([self.effective, *risen])

    def _lost(self, step: Step, state: State, code: str, retryable: bool) -> None:
        step.state = state
        if self.error is None or (self.error[1] and not retryable):
            self.error = (code, retryable, step.index)
        if not self.open_steps:
            self._end(JobStatus.FAILED)

    def _end(self, status: JobStatus) -> None:
        self.status = status
        self.ended.append(status)
