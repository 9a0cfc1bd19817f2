"""What time alone does: leases end, delays are over, patience is at an end, tasks grow old."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from fairlead.model.priority import Priority
from fairlead.model.states import State
from fairlead.rules.ageing import STEPS, promotion
from fairlead.rules.board import Board
from fairlead.rules.limits import Rate
from fairlead.rules.values import Lease, Place, Task

Thing = TypeVar("Thing", bound=Task | Lease)


def expire(board: Board, now: int) -> None:
    for _, lease in _due(_lease_ends(board), now, board.policy.batch):
        if isinstance(lease, Lease):
            board.free_lease(lease)
        else:
            _end_run(board, lease, now)


def _end_run(board: Board, task: Task, now: int, seen_dead: bool = False) -> None:
    """Nobody will report on it any more; or somebody saw its worker die."""
    alone = not _in_company(board, task)
    if task.stopping is not None:
        board.free(task)
    elif task.deadline <= now:
        board.fail_run(task, "timeout", retriable=True, jitter=1000, retry_after=0, now=now)
    elif alone and (seen_dead or _was_outlived(board, task)):
        board.crash_run(task, "worker_lost", now)
    else:
        board.lose_run(task)


def _in_company(board: Board, task: Task) -> bool:
    """Whether its lost worker held other tasks too when the first of its leases ended."""
    worker = board.workers[task.worker or ""]
    if worker.lost_in_company is None:
        worker.lost_in_company = len(board.running_on(worker)) > 1
    return worker.lost_in_company


def _was_outlived(board: Board, task: Task) -> bool:
    """Whether its worker was silent when the lease ended, while one that was there before it was heard of."""
    lost, policy = board.workers[task.worker or ""], board.policy
    seen_since = task.lease_until + policy.grace - policy.worker_ttl // 2
    if lost.seen >= seen_since:
        return False
    latest = sorted(board.workers.values(), key=lambda worker: (worker.seen, worker.id), reverse=True)
    return any(
        other.seen >= seen_since and other.registered <= lost.seen for other in latest[: policy.witnesses]
    )


def lose(board: Board, worker: str, now: int) -> int:
    """A worker is known to be dead: all it holds ends now. How much that was."""
    held = [task for task in board.running.values() if task.worker == worker]
    for task in sorted(held, key=lambda task: (task.base is not Priority.HIGH, task.id)):
        _end_run(board, task, now, seen_dead=True)
    board.workers.pop(worker, None)
    return len(held)


def promote(board: Board, now: int) -> None:
    batch = board.policy.batch
    for task in _delays_over(board, now)[:batch]:
        del board.delayed[task.id]
        board.begin_again(task, task.run_at or now)
    for _, task in _due(_patience_ends(board), now, batch):
        board.leave(task)
        task.state, task.error_code = State.FAILED, "RESOURCE_EXHAUSTED"
        board.end_job(task)
    for place, better_place in STEPS.items():
        due = [(at, task) for at, task in _promotions(board, place) if at <= now]
        due.sort(key=lambda pair: (pair[0], pair[1].seq))  # those that came together, in the order they came
        for _, task in due[:batch]:
            board.leave(task)
            board.enter(task, better_place)


def overdue(board: Board, now: int) -> Priority:
    """The best priority of what is due but not queued yet: nothing worse may start before it."""
    return min((task.base for task in _delays_over(board, now)), default=Priority.LOW)


def next_instant(board: Board, now: int) -> int | None:
    """The earliest instant after `now` at which time alone could change something."""
    instants = [
        *(at for at, _ in _lease_ends(board)),
        *(at for at, _ in _delay_ends(board)),
        *(at for at, _ in _patience_ends(board)),
        *(at for place in STEPS for at, _ in _promotions(board, place)),
        *_refills(board, now),
    ]
    return min((at for at in instants if at > now), default=None)


def _due(instants: Iterable[tuple[int, Thing]], now: int, batch: int) -> list[tuple[int, Thing]]:
    due = [(at, thing) for at, thing in instants if at <= now]
    due.sort(key=lambda pair: (pair[0], pair[1].id))
    return due[:batch]


def _lease_ends(board: Board) -> list[tuple[int, Task | Lease]]:
    leases: list[Task | Lease] = [*board.running.values(), *board.leases.values()]
    return [(lease.lease_until + board.policy.grace, lease) for lease in leases]


def _delay_ends(board: Board) -> list[tuple[int, Task]]:
    return [(task.run_at, task) for task in board.delayed.values() if task.run_at is not None]


def _delays_over(board: Board, now: int) -> list[Task]:
    """The best base priority first, then in the order of their times and submits."""
    due = [(task.base, run_at, task.seq, task) for run_at, task in _delay_ends(board) if run_at <= now]
    return [task for *_, task in sorted(due, key=lambda row: row[:3])]


def _patience_ends(board: Board) -> list[tuple[int, Task]]:
    return [(task.wait_until, task) for task in board.queued.values() if task.wait_until is not None]


def _promotions(board: Board, place: Place) -> list[tuple[int, Task]]:
    here = [(promotion(task, board.policy), task) for task in board.queued.values() if task.place is place]
    return [(at, task) for at, task in here if at is not None]


def _refills(board: Board, now: int) -> Iterator[int]:
    """When each rate will have what a waiting task needs of it."""
    for task in board.queued.values():
        for name, units in task.limits.items():
            limit = board.ledger.limits[name]
            if isinstance(limit, Rate):
                yield limit.refilled_at(units, now)
