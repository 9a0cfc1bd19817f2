"""The board: all tasks, leases and workers, and the few moves of which all acts are made."""

from __future__ import annotations

from fairlead.model.states import TERMINAL, State
from fairlead.rules.choice import Turns, can_serve
from fairlead.rules.fairness import Job, Reserved, Shares, stride_of
from fairlead.rules.holds import heads
from fairlead.rules.ledger import Ledger
from fairlead.rules.retry import RetryDecision, after_crash, after_failure, after_loss
from fairlead.rules.values import Lease, Place, Policy, Task, Worker


class Board:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.ledger = Ledger()
        self.shares = Shares(policy)
        self.turns = Turns(policy.budget)
        self.paused_types: set[str] = set()
        self.workers: dict[str, Worker] = {}
        self.leases: dict[str, Lease] = {}  #: leases without a task
        self.tasks: dict[str, Task] = {}  #: all tasks, and by state:
        self.queued: dict[str, Task] = {}
        self.delayed: dict[str, Task] = {}
        self.running: dict[str, Task] = {}  #: tasks with a lease, cancelled ones too
        self.touched: set[str] = set()  #: sub-queues whose head may have changed
        self.jobs: dict[str, Job] = {}  #: jobs that have not ended
        self.last_seq = 0
        self.last_fence = 0

    def next_fence(self, now: int) -> int:
        """Larger than all before, and no less than the time in microseconds."""
        self.last_fence = max(self.last_fence + 1, now * 1000)
        return self.last_fence

    def running_on(self, worker: Worker) -> list[Task]:
        return [task for task in self.running.values() if task.worker == worker.id]

    def enter(self, task: Task, place: Place) -> None:
        """Queue a task in a place, at the end of its fair share or where the job of a step has reserved."""
        self.ledger.companions.see(task.limits, task.capabilities)
        task.place = place
        job = self.jobs.get(task.job or "")
        task.tag, task.seq = self._step_position(task, job) if job else self._position(task)
        self.queue(task)

    def _position(self, task: Task) -> tuple[int, int]:
        stride = stride_of(task.weight, task.factor)
        return self.shares.ledger(task.place).reserve(task.fair, stride), self.next_seq()

    def _step_position(self, task: Task, job: Job) -> tuple[int, int]:
        """The first step of a job in a place reserves the positions of all that follow."""
        ledger = self.shares.ledger(task.place)
        if task.place not in job.reserved:
            stride, count = stride_of(task.weight, task.factor), job.steps - task.step
            first = ledger.reserve(task.fair, stride, count) - task.step * stride
            job.reserved[task.place] = Reserved(first, self.next_seq(count) - task.step, stride)
        tag, seq = job.reserved[task.place].position(task.step)
        return max(ledger.v, tag), seq

    def next_seq(self, count: int = 1) -> int:
        """The first of the next `count`."""
        self.last_seq += count
        return self.last_seq - count + 1

    def queue(self, task: Task) -> None:
        task.state = State.QUEUED
        self.queued[task.id] = task
        self.touched.add(task.sub_queue)

    def reindex(self) -> None:
        """Note the new heads of the sub-queues that have changed."""
        if self.touched:
            first = heads(task for task in self.queued.values() if task.sub_queue in self.touched)
            for sub_queue in self.touched:
                self.ledger.patience.watch(sub_queue, first.get(sub_queue), self.policy)
            self.touched.clear()

    def is_served(self, task: Task) -> bool:
        """Is there a worker that may start it when it can start?"""
        may = task.type not in self.paused_types
        return may and any(worker.listed and can_serve(worker, task) for worker in self.workers.values())

    def leave(self, task: Task, started: bool = False) -> None:
        del self.queued[task.id]
        self.touched.add(task.sub_queue)
        self.ledger.end_hold(task, started)
        ledger = self.shares.name(task.place)
        if not self.jobs and not any(self.shares.name(t.place) == ledger for t in self.queued.values()):
            self.shares.ledger(task.place).run_dry()

    def delay(self, task: Task, run_at: int) -> None:
        self.last_seq += 1
        task.state, task.run_at, task.seq = State.DELAYED, run_at, self.last_seq
        self.delayed[task.id] = task

    def start(self, task: Task, worker: Worker, lease_ms: int, now: int) -> None:
        self.turns.count(task.place)
        self.shares.ledger(task.place).start(task.tag)
        self.leave(task, started=True)
        self.begin_run(task, worker, lease_ms, now)

    def begin_run(self, task: Task, worker: Worker, lease_ms: int, now: int) -> None:
        task.state, task.fence, task.worker = State.EXECUTING, self.next_fence(now), worker.id
        task.started, task.deadline, task.lease_until = now, now + task.timeout, now + task.lease_of(lease_ms)
        task.wait_until = None
        self.ledger.take(task.fence, task.limits, now)
        self.running[task.id] = task

    def review(self, now: int) -> None:
        self.ledger.review_holds(heads(self.queued.values()), self.is_served, self.policy, now)

    def free(self, task: Task) -> None:
        """Its lease ends."""
        self.ledger.give_back(task.lease_fence)
        del self.running[task.id]
        task.worker = task.stopping = None

    def free_lease(self, lease: Lease) -> None:
        self.ledger.give_back(lease.fence)
        del self.leases[lease.id]

    def fail_run(
        self, task: Task, code: str, retriable: bool, jitter: int, retry_after: int, now: int
    ) -> None:
        """An executing task failed."""
        self.free(task)
        self.shares.learn(task.fair, now - task.started)
        self.decide(task, after_failure(task, code, retriable, jitter, retry_after, self.policy), code, now)

    def crash_run(self, task: Task, code: str, now: int, ran: int | None = None) -> None:
        """What ran an executing task is gone; `ran` is for how long it ran, if that is known."""
        if ran is not None:
            self.shares.learn(task.fair, ran)
        self._put_back(task, after_crash(task, self.policy), code)

    def lose_run(self, task: Task) -> None:
        """The worker of an executing task is gone, and the task was probably not the cause."""
        self._put_back(task, after_loss(task, self.policy), "worker_lost")

    def _put_back(self, task: Task, decision: RetryDecision, code: str) -> None:
        """Queue it in its place again, unless the decision is final."""
        self.free(task)
        self.note(task, decision, code)
        if decision.state is State.QUEUED:
            self.queue(task)

    def note(self, task: Task, decision: RetryDecision, code: str) -> None:
        task.retries, task.crashes, task.losses = decision.retries, decision.crashes, decision.losses
        task.state, task.error_code, task.timeout = decision.state, code, decision.timeout
        if task.state in TERMINAL:
            self.end_job(task)

    def end_job(self, task: Task) -> None:
        """A step failed for good, or was cancelled."""
        self.jobs.pop(task.job or "", None)

    def decide(self, task: Task, decision: RetryDecision, code: str, now: int) -> None:
        self.note(task, decision, code)
        if decision.state is State.DELAYED:
            self.delay(task, now + decision.delay)
        elif decision.state is State.QUEUED:
            self.begin_again(task, now)

    def begin_again(self, task: Task, arrival: int) -> None:
        task.arrival, task.run_at = arrival, None
        self.enter(task, Place.native(task.base))
