"""The twin of the store: the whole scheduler in memory, one method per act.

An act that raises has changed nothing, with one exception: a report on a cancelled task frees its lease.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from fairlead.errors import (
    AlreadyFinished,
    Fenced,
    InvalidInput,
    LimitFull,
    LimitInUse,
    NotReplayable,
    UnknownLimit,
    UnknownTask,
    UnknownWorker,
)
from fairlead.model.priority import Priority
from fairlead.model.states import REPLAYABLE, TERMINAL, State
from fairlead.rules.fairness import Job
from fairlead.rules.limits import Limit, Rate, Slots
from fairlead.rules.timed import TimedBoard
from fairlead.rules.values import Lease, NewTask, Task, Worker


class Twin(TimedBoard):
    # Limits and types

    def set_limit(
        self,
        name: str,
        slots: int | None = None,
        count: int | None = None,
        period_ms: int | None = None,
        burst: int | None = None,
        *,
        now: int,
    ) -> None:
        limit: Limit
        if slots is not None:
            limit = Slots(slots)
        elif count and period_ms:
            limit = Rate(count, period_ms, count if burst is None else burst)
        else:
            raise InvalidInput("limit", "needs slots, or a count and a period")
        self.ledger.define(name, limit, now)
        self.review(now)

    def delete_limit(self, name: str) -> None:
        if name not in self.ledger.limits:
            raise UnknownLimit
        needed = [task.limits for task in self.tasks.values() if task.state not in TERMINAL or task.stopping]
        needed += [lease.limits for lease in self.leases.values()]
        if any(name in limits for limits in needed):
            raise LimitInUse
        self.ledger.forget(name)

    def pause_limit(self, name: str, paused: bool, now: int) -> None:
        if name not in self.ledger.limits:
            raise UnknownLimit
        self.ledger.limits[name].paused = paused
        self.review(now)

    def pause_type(self, type: str, paused: bool, now: int) -> None:
        (self.paused_types.add if paused else self.paused_types.discard)(type)
        self.review(now)

    def make_holds(self, now: int) -> None:
        self.reindex()
        self.ledger.make_holds(self.queued.values(), self.is_served, self.policy, now)

    # Workers

    def register(self, worker: Worker, now: int) -> None:
        self.workers[worker.id] = replace(
            worker, registered=now, seen=now, listed=True, draining=False, lost_in_company=None
        )
        self.follow_capacity(now)

    def heartbeat(self, worker_id: str, now: int) -> None:
        self._alive(worker_id, now).mark_seen(now)

    def drain(self, worker_id: str, now: int) -> None:
        if worker_id not in self.workers:
            raise UnknownWorker
        self.workers[worker_id].draining, self.workers[worker_id].listed = True, False
        self.follow_capacity(now)

    def bury(self, now: int) -> None:
        """Unlist workers that have fallen silent."""
        for worker in self.workers.values():
            worker.listed = worker.listed and now - worker.seen <= self.policy.worker_ttl
        self.follow_capacity(now)

    def _alive(self, worker_id: str, now: int) -> Worker:
        worker = self.workers.get(worker_id)
        if not worker or now - worker.seen > self.policy.worker_ttl:
            raise UnknownWorker
        return worker

    # The life of a task

    def submit(self, new: NewTask, now: int) -> Task:
        """The same id again changes nothing."""
        if new.id in self.tasks:
            return self.tasks[new.id]
        self.ledger.check(new.limits)
        task = self.tasks[new.id] = Task.of(new, now)
        self.assign(task)
        job = self.jobs.get(task.job or "")
        task.factor = job.factor if job else self.shares.factor(task.fair)
        if task.run_at is None:
            self.enter(task, task.place)
        else:
            self.delay(task, task.run_at)
        return task

    def begin_job(self, job: str, fair: str, steps: int) -> None:
        """Its first step is submitted next."""
        self.jobs[job] = Job(steps, self.shares.factor(fair), steps)

    def claim(self, worker_id: str, want: int, lease_ms: int, now: int) -> list[str]:
        worker = self._alive(worker_id, now)
        if worker.draining:
            return []
        self.advance(now)
        worker.mark_seen(now)
        self.make_holds(now)
        started, kept, worst = list[str](), list[Task](), self.overdue(now)
        while len(started) < want:
            waiting = [task for task in self.queued.values() if task.place.priority <= worst]
            step = self.next_step(worker, [*self.running_on(worker), *kept], waiting, now)
            if isinstance(step, Task):
                self.start(step, worker, lease_ms, now)
                started.append(step.id)
            elif step and not kept:  # one in an act
                self.apply(step, now)
                kept.append(step.head)  # its slot
            else:
                break
        if not kept:
            self.relieve_slots(now)
        return started

    def hand(self, worker_id: str, lease_ms: int, now: int) -> list[str]:
        """An idle worker is given the task that it would have claimed."""
        worker = self.workers[worker_id]
        task = self.next_step(worker, self.running_on(worker), self.queued.values(), now)
        if not isinstance(task, Task):
            return []
        self.start(task, worker, lease_ms, now)
        return [task.id]

    def admit(self, new: NewTask, worker_id: str, lease_ms: int, now: int) -> Task:
        """An interactive task that a worker was handed."""
        task = self.tasks[new.id] = Task.of(new, now)
        self.assign(task)
        worker = self.workers[worker_id]
        assert self.may_admit(task, worker, now)
        self.last_seq += 1
        task.seq, task.active_at = self.last_seq, now
        self.begin_run(task, worker, lease_ms, now)
        return task

    def shortened(self, task_id: str, fence: int, worker: str = "") -> None:
        self.confirm(self._executing(task_id, fence, worker))

    def renew(self, task_id: str, fence: int, lease_ms: int, now: int) -> int:
        task = self._executing(task_id, fence)
        task.lease_until = min(now, task.deadline) + task.lease_of(lease_ms)
        return task.lease_until

    def extend(self, task_id: str, fence: int, ms: int, lease_ms: int, now: int, worker: str = "") -> int:
        task = self._executing(task_id, fence, worker)
        most = task.started + self.tiers[self.index(task.tier)].ms if task.tier else math.inf
        if (deadline := min(now + ms, most)) > task.deadline:
            task.deadline, task.bounded = int(deadline), task.bounded or deadline == most
        task.lease_until = max(task.lease_until, now + task.lease_of(lease_ms))
        return task.deadline

    def complete(
        self, task_id: str, fence: int, now: int, follow: Sequence[NewTask] = (), worker: str = ""
    ) -> None:
        task = self._reporting(task_id, fence, worker)
        if task.state is State.COMPLETED and task.fence == fence:
            return
        self._executing(task_id, fence, worker)
        for new in follow:
            self.ledger.check(new.limits)
        self.free(task)
        self.shares.learn(task.fair, now - task.started)
        task.state, task.reported, task.error_code = State.COMPLETED, fence, None
        if job := self.jobs.get(task.job or ""):
            job.open -= 1
            if not job.open:
                self.end_job(task)
        for new in follow:
            self.submit(new, now)

    def fail(
        self,
        task_id: str,
        fence: int,
        code: str,
        retriable: bool,
        jitter: int,
        retry_after_ms: int,
        now: int,
        crashed: bool = False,
        worker: str = "",
    ) -> State:
        task = self._reporting(task_id, fence, worker)
        if task.reported != fence:
            self._executing(task_id, fence, worker)
            task.reported = fence
            if crashed:
                self.crash_run(task, code, now, ran=now - task.started)
            else:
                self.fail_run(task, code, retriable, jitter, retry_after_ms, now)
        return task.state

    def release(self, task_id: str, fence: int, now: int, worker: str = "") -> State:
        """Put it back as if it had never been started."""
        task = self._reporting(task_id, fence, worker)
        if task.reported != fence:
            self._executing(task_id, fence, worker)
            self.free(task)
            task.reported = fence
            if task.interactive:
                task.state = State.CANCELLED
            else:
                self.queue(task)
        return task.state

    def stall(self, worker_id: str, begun: set[int], now: int) -> set[tuple[str, int]]:
        """Release what an unresponsive worker has not begun. Returns the tasks and their fences."""
        if worker_id not in self.workers:
            raise UnknownWorker
        held = {(task.id, task.lease_fence) for task in self.running_on(self.workers[worker_id])}
        given_back = {(task_id, fence) for task_id, fence in held if fence not in begun}
        for task_id, fence in given_back:
            with suppress(Fenced):  # it was cancelled: only its units become free
                self.release(task_id, fence, now, worker_id)
        return given_back

    def cancel(self, task_id: str, now: int) -> State:
        task = self._known(task_id)
        if task.state in TERMINAL - {State.CANCELLED}:
            raise AlreadyFinished
        if task.state is State.QUEUED:
            self.leave(task)
        elif task.state is State.DELAYED:
            del self.delayed[task.id]
        elif task.state is State.EXECUTING:
            task.stopping, task.fence = task.fence, self.next_fence(now)
        task.state = State.CANCELLED
        self.end_job(task)
        return task.state

    def replay(self, task_id: str, now: int) -> None:
        task = self._known(task_id)
        if task.state not in REPLAYABLE or task.interactive:
            raise NotReplayable
        if task.limits.keys() - self.ledger.limits.keys():
            raise InvalidInput("limits", "one of them no longer exists")
        task.retries = task.crashes = task.losses = 0
        task.timeout, task.wait_until, task.error_code = task.timeout_given, None, None
        self.begin_again(task, now)

    def _known(self, task_id: str) -> Task:
        if task_id not in self.tasks:
            raise UnknownTask
        return self.tasks[task_id]

    def _executing(self, task_id: str, fence: int, worker: str = "") -> Task:
        """The fence and, if it is named, the worker must be those of the lease."""
        task = self._known(task_id)
        if task.state is not State.EXECUTING or task.fence != fence or worker not in ("", task.worker):
            raise Fenced
        return task

    def _reporting(self, task_id: str, fence: int, worker: str) -> Task:
        """A worker whose task was cancelled has stopped now: only here its units become free."""
        task = self._known(task_id)
        if task.stopping == fence and worker in ("", task.worker):
            self.free(task)
            raise Fenced
        return task

    # Leases without a task

    def acquire(self, limit: str, lease_id: str, units: int, lease_ms: int, now: int) -> int:
        """The same id returns the same fence while the lease lasts."""
        if limit not in self.ledger.limits:
            raise UnknownLimit
        if lease_id in self.leases:
            return self.leases[lease_id].fence
        self.ledger.check({limit: units})
        self.advance(now)
        if self.ledger.room(limit, now, priority=Priority.MEDIUM) < units:
            raise LimitFull
        self.ledger.companions.see_alone(limit)
        fence = self.next_fence(now)
        lease = self.leases[lease_id] = Lease(lease_id, {limit: units}, fence, now + lease_ms)
        self.ledger.take(lease.fence, lease.limits, now)
        return lease.fence

    def renew_lease(self, lease_id: str, fence: int, lease_ms: int, now: int) -> int:
        lease = self._held(lease_id, fence)
        lease.lease_until = now + lease_ms
        return lease.lease_until

    def release_lease(self, lease_id: str, fence: int) -> None:
        self.free_lease(self._held(lease_id, fence))

    def _held(self, lease_id: str, fence: int) -> Lease:
        lease = self.leases.get(lease_id)
        if not lease or lease.fence != fence:
            raise Fenced
        return lease
