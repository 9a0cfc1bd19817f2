"""What time alone does: leases and delays end, tasks that waited too long fail, others are promoted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from fairlead.model.priority import Priority
from fairlead.model.states import State
from fairlead.rules.ageing import STEPS, promotion
from fairlead.rules.limits import Rate
from fairlead.rules.tiers import TieredBoard
from fairlead.rules.values import Lease, Place, Task

Thing = TypeVar("Thing", bound=Task | Lease)


class TimedWork:
    """What time alone may still do in one act, in work: 1 for a task, and 1 for each limit that it names."""

    def __init__(self, most: int) -> None:
        self.left = most

    def share(self, due: Iterable[Thing]) -> Iterator[Thing]:
        """What is moved of the next kind: half of what is left, so that no kind delays the others."""
        share = max(1, -(-self.left // 2))
        for thing in due:
            if share <= 0:
                return
            work = 1 + len(thing.limits)
            share, self.left = share - work, self.left - work
            yield thing


class TimedBoard(TieredBoard):
    def advance(self, now: int) -> None:
        """All that is due, as far as it fits into one act."""
        work = TimedWork(self.policy.timed_work)
        self.expire(now, work)
        self.promote(now, work)

    def expire(self, now: int, work: TimedWork | None = None) -> None:
        work = work or TimedWork(self.policy.timed_work)
        for lease in work.share(_due(self._lease_ends(), now)):
            if isinstance(lease, Lease):
                self.free_lease(lease)
            else:
                self._end_run(lease, now)

    def _end_run(self, task: Task, now: int, seen_dead: bool = False) -> None:
        """No report on it will come: its lease ran out, or its worker was seen to die."""
        alone = not self._in_company(task)
        if task.stopping is not None:
            self.free(task)
        elif task.deadline <= now and task.bounded:
            self.fail_run(task, "DEADLINE", retriable=False, jitter=1000, retry_after=0, now=now)
        elif task.deadline <= now:
            self.fail_run(task, "timeout", retriable=True, jitter=1000, retry_after=0, now=now)
        elif alone and (seen_dead or self._was_outlived(task)):
            self.crash_run(task, "worker_lost", now)
        else:
            self.lose_run(task)

    def _in_company(self, task: Task) -> bool:
        """Whether its lost worker held other tasks too when the first of its leases ended."""
        worker = self.workers[task.worker or ""]
        if worker.lost_in_company is None:
            worker.lost_in_company = len(self.running_on(worker)) > 1
        return worker.lost_in_company

    def _was_outlived(self, task: Task) -> bool:
        """Whether its worker was silent when the lease ended, while one that registered earlier was not."""
        lost, policy = self.workers[task.worker or ""], self.policy
        seen_since = task.lease_until + policy.grace - policy.worker_ttl // 2
        if lost.seen >= seen_since:
            return False
        latest = sorted(self.workers.values(), key=lambda worker: (worker.seen, worker.id), reverse=True)
        return any(
            other.seen >= seen_since and other.registered <= lost.seen for other in latest[: policy.witnesses]
        )

    def lose_worker(self, worker: str, now: int) -> int:
        """A worker is known to be dead: all its runs end now. Returns how many."""
        held = [task for task in self.running.values() if task.worker == worker]
        for task in sorted(held, key=lambda task: (task.base is not Priority.HIGH, task.id)):
            self._end_run(task, now, seen_dead=True)
        self.workers.pop(worker, None)
        self.follow_capacity(now)
        return len(held)

    def promote(self, now: int, work: TimedWork | None = None) -> None:
        work = work or TimedWork(self.policy.timed_work)
        for task in work.share(self._delays_over(now)):
            del self.delayed[task.id]
            self.begin_again(task, task.run_at or now)
        for task in work.share(_due(self._patience_ends(), now)):
            self.leave(task)
            task.state, task.error_code = State.FAILED, "RESOURCE_EXHAUSTED"
            self.end_job(task)
        for place, better_place in STEPS.items():
            due = [(at, task) for at, task in self._promotions(place) if at <= now]
            # tasks that arrived together move in the order in which they came
            due.sort(key=lambda pair: (pair[0], pair[1].seq))
            for task in work.share(task for _, task in due):
                self.leave(task)
                self.enter(task, better_place)

    def overdue(self, now: int) -> Priority:
        """The best priority of what is due but not queued yet: nothing worse may start before it."""
        return min((task.base for task in self._delays_over(now)), default=Priority.LOW)

    def next_instant(self, now: int) -> int | None:
        """The earliest instant after `now` at which time alone could change something."""
        instants = [
            *(at for at, _ in self._lease_ends()),
            *(at for at, _ in self._delay_ends()),
            *(at for at, _ in self._patience_ends()),
            *(at for place in STEPS for at, _ in self._promotions(place)),
            *self._refills(now),
        ]
        return min((at for at in instants if at > now), default=None)

    def _lease_ends(self) -> list[tuple[int, Task | Lease]]:
        leases: list[Task | Lease] = [*self.running.values(), *self.leases.values()]
        return [(lease.lease_until + self.policy.grace, lease) for lease in leases]

    def _delay_ends(self) -> list[tuple[int, Task]]:
        return [(task.run_at, task) for task in self.delayed.values() if task.run_at is not None]

    def _delays_over(self, now: int) -> list[Task]:
        """The best base priority first, then in the order of their times and submits."""
        due = [(task.base, run_at, task.seq, task) for run_at, task in self._delay_ends() if run_at <= now]
        return [task for *_, task in sorted(due, key=lambda row: row[:3])]

    def _patience_ends(self) -> list[tuple[int, Task]]:
        return [(task.wait_until, task) for task in self.queued.values() if task.wait_until is not None]

    def _promotions(self, place: Place) -> list[tuple[int, Task]]:
        here = [(promotion(task, self.policy), task) for task in self.queued.values() if task.place is place]
        return [(at, task) for at, task in here if at is not None]

    def _refills(self, now: int) -> Iterator[int]:
        """When each rate has the units that a waiting task needs."""
        for task in self.queued.values():
            for name, units in task.limits.items():
                limit = self.ledger.limits[name]
                if isinstance(limit, Rate):
                    yield limit.refilled_at(units, now)


def _due(instants: Iterable[tuple[int, Thing]], now: int) -> list[Thing]:
    due = [(at, thing.id, thing) for at, thing in instants if at <= now]
    return [thing for *_, thing in sorted(due, key=lambda row: row[:2])]
