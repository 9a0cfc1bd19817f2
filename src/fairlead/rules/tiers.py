"""Tiers: how long tasks may run, what elastic runs take beyond their needs, and what is taken back from them.

Tiers are nested limits: a task of a tier needs a unit of its own limit and of those of all shorter tiers. An
elastic run needs the shortest only, and takes the longer ones that are free; relief takes them back for a
waiting task that lacks nothing else. A session (an interactive task) is halted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from fairlead.model.states import State
from fairlead.rules.board import Board
from fairlead.rules.choice import can_serve, choose, has_slot
from fairlead.rules.holds import heads
from fairlead.rules.limits import Slots
from fairlead.rules.retry import RetryDecision
from fairlead.rules.values import Task, Tier, Worker

PREFIX = "tier:"
MOST_SESSIONS = 16  #: that are considered for halting


@dataclass(frozen=True)
class Relief:
    """What would be taken back so that `head` can start."""

    head: Task
    run: Task | None = None  #: an elastic run, which becomes shorter:
    to: Tier | None = None
    session: Task | None = None  #: halted


def sizes_of_tiers(tiers: Sequence[Tier], capacity: int) -> dict[str, int]:
    """The limits of tiers, which never rise with the tier, for workers with this capacity together."""
    own = (tier.slots if tier.slots is not None else max(1, capacity * tier.share // 100) for tier in tiers)
    return {PREFIX + tier.name: size for tier, size in zip(tiers, accumulate(own, min), strict=True)}


def needs_of_tier(tiers: Sequence[Tier], duration: str | None) -> tuple[int | None, dict[str, int]]:
    """The number of the tier that a task begins with (None without tiers), and what it needs for that."""
    if not tiers:
        return None, {}
    names = [tier.name for tier in tiers]
    number = 0 if duration in (None, "interactive") else names.index(duration)
    return number, {PREFIX + name: 1 for name in names[: number + 1]}


class TieredBoard(Board):
    @property
    def tiers(self) -> tuple[Tier, ...]:
        return self.policy.tiers

    def follow_capacity(self, now: int) -> None:
        """Limits of tiers are shares of what the listed workers can run, and never rise with the tier."""
        capacity = sum(worker.capacity for worker in self.workers.values() if worker.listed)
        for name, size in sizes_of_tiers(self.tiers, capacity).items():
            limit = self.ledger.limits.get(name)
            if not isinstance(limit, Slots) or limit.limit != size:
                self.ledger.define(name, Slots(size), now)
                self.review(now)

    def index(self, name: str | None) -> int:
        return next(i for i, tier in enumerate(self.tiers) if tier.name == name)

    def assign(self, task: Task) -> None:
        """Gives a new task the limits of its tier."""
        if self.tiers:
            task.limits = {**task.limits, **needs_of_tier(self.tiers, task.duration)[1]}
            task.elastic = task.duration is None
            if task.interactive:
                task.max_retries = 0

    def begin_run(self, task: Task, worker: Worker, lease_ms: int, now: int) -> None:
        super().begin_run(task, worker, lease_ms, now)
        task.bounded = False
        self.take_optional(task, now)
        self.ledger.taken[task.fence] = {**task.limits, **task.optional}

    def free(self, task: Task) -> None:
        super().free(task)
        task.optional, task.revoked = {}, {}
        self.end_relief(task)

    def end_relief(self, task: Task) -> None:
        """What was taken back from it is free."""
        task.relieves = None
        self.keep_slots()

    def keep_slots(self) -> None:
        """A unit of the shortest tier for each task that others give units for, or those behind take it."""
        heads = {task.relieves: task.relieves_in for task in self.running.values() if task.relieves}
        if self.tiers:
            self.ledger.kept = {PREFIX + self.tiers[0].name: list(heads.values())}

    def _put_back(self, task: Task, decision: RetryDecision, code: str) -> None:
        """A session is never queued."""
        super()._put_back(task, replace(decision, state=State.FAILED) if task.interactive else decision, code)

    def take_optional(self, task: Task, now: int) -> None:
        """A run begins: an elastic one takes each longer tier as long as there is room."""
        if not self.tiers or task.interactive:
            return
        at = self.index(task.duration) if task.duration else 0
        if task.elastic:
            for tier in self.tiers[1:]:
                if self.ledger.room(PREFIX + tier.name, now, priority=task.place.priority) < 1:
                    break
                at += 1
                task.optional[PREFIX + tier.name] = 1
        self.bound(task, self.tiers[at])

    def bound(self, task: Task, tier: Tier) -> None:
        task.tier = tier.name
        if task.started + tier.ms < task.deadline:
            task.deadline, task.bounded = task.started + tier.ms, True

    def confirm(self, task: Task) -> None:
        """Its worker has applied the new deadline: what was taken back is free."""
        held = dict(self.ledger.taken[task.lease_fence])
        for name in task.revoked:
            del held[name]
        self.ledger.taken[task.lease_fence] = held
        task.revoked = {}
        self.end_relief(task)

    # Relief

    def next_step(
        self, worker: Worker, running: list[Task], waiting: Collection[Task], now: int
    ) -> Task | Relief | None:
        """What a worker that runs these starts next, or what a better task needs to be given back first."""

        def may_run(head: Task) -> bool:
            return can_serve(worker, head) and has_slot(worker, running, head)

        head = choose(waiting, worker, running, self.ledger, self.turns, self.paused_types, now)
        parked = self.best_parked(may_run, self.sessions(), now)
        if parked and (not head or self.turns.rank(parked.head) < self.turns.rank(head)):
            return parked
        return head

    def relieve_many(self, workers: Iterable[Worker], now: int) -> bool:
        """These are idle. If none can start anything: for the best task that one of them could run."""
        idle = [(worker, self.running_on(worker)) for worker in workers]

        def may_run(head: Task) -> bool:
            return any(can_serve(worker, head) and has_slot(worker, held, head) for worker, held in idle)

        if not idle or any(self._first(worker, running, now) for worker, running in idle):
            return False
        found = self.best_parked(may_run, self.sessions(), now)
        self.apply(found, now)
        return found is not None

    def relieve_slots(self, now: int) -> None:
        """All slots are taken, one of them by a session: the best task that could run instead halts it."""
        best: Relief | None = None
        for session in self.sessions()[:MOST_SESSIONS]:
            found = self._instead_of(session, now)
            if found and (not best or self.turns.rank(found.head) < self.turns.rank(best.head)):
                best = found
        self.apply(best, now)

    def _instead_of(self, session: Task, now: int) -> Relief | None:
        worker = self.workers[session.worker or ""]
        running = self.running_on(worker)
        if len(running) != worker.capacity:
            return None
        others = [task for task in running if task is not session]

        def may_run(head: Task) -> bool:
            return can_serve(worker, head) and has_slot(worker, others, head)

        own = [one for one in self.sessions() if one.worker == worker.id]
        parked = self.best_parked(may_run, own, now)
        head = self._first(worker, others, now)
        if parked and (not head or self.turns.rank(parked.head) < self.turns.rank(head)):
            return parked
        if not head or self.is_relieved(head) or self.is_slot_free(head, now):
            return None
        return Relief(head, session=session)

    def _first(self, worker: Worker, running: list[Task], now: int) -> Task | None:
        """What a worker that runs these would start next."""
        waiting = self.queued.values()
        return choose(waiting, worker, running, self.ledger, self.turns, self.paused_types, now)

    def is_slot_free(self, task: Task, now: int) -> bool:
        return any(
            worker.listed
            and not worker.draining
            and now - worker.seen <= self.policy.worker_ttl
            and can_serve(worker, task)
            and has_slot(worker, self.running_on(worker), task)
            for worker in self.workers.values()
        )

    def sessions(self) -> list[Task]:
        """Those that may be halted, the one that was idle longest first."""
        live = [
            task
            for task in self.running.values()
            if task.interactive and task.stopping is None and self._is_listed(task.worker)
        ]
        return sorted(live, key=lambda task: (task.active_at, task.id))

    def _is_listed(self, name: str | None) -> bool:
        return name in self.workers and self.workers[name].listed

    def is_relieved(self, head: Task) -> bool:
        return any(task.relieves == head.id for task in self.running.values())

    def best_parked(self, may_run: Callable[[Task], bool], sessions: list[Task], now: int) -> Relief | None:
        found = (self._remedy(head, sessions, now) for head in self._heads() if may_run(head))
        return min(filter(None, found), key=lambda relief: self.turns.rank(relief.head), default=None)

    def _heads(self) -> Iterator[Task]:
        for head in heads(self.queued.values()).values():
            if head.type not in self.paused_types and not self.is_relieved(head):
                yield head

    def _remedy(self, head: Task, sessions: list[Task], now: int) -> Relief | None:
        """None if it can start, or if nothing that may be taken back would let it start."""
        lacking = self._lacking(head, now)
        if not lacking:
            return None
        session = None
        if lacking[0] == 0:
            if not sessions:
                return None
            session = sessions[0]
            del lacking[0]
        if not lacking:
            return Relief(head, session=session)
        run = self._victim(lacking[-1])
        return None if run is None else Relief(head, run, self.tiers[lacking[0] - 1], session)

    def _lacking(self, head: Task, now: int) -> list[int] | None:
        """The tiers that it lacks, the shortest first; None if it lacks something else."""
        lacking = []
        for name, units in head.limits.items():
            room = self.ledger.room(name, now, head.sub_queue, head.place.priority)
            if room < units:
                tier = name.removeprefix(PREFIX)
                known = name.startswith(PREFIX) and any(one.name == tier for one in self.tiers)
                kept = self.ledger.kept_from(name, head.place.priority)
                if not known or room + kept < 0 or self.ledger.limits[name].paused:
                    return None
                lacking.append(self.index(tier))
        return sorted(lacking)

    def _victim(self, least: int) -> Task | None:
        """The youngest of the elastic runs that hold this tier."""
        holding = [task for task in self._can_be_shorter() if self.index(task.tier) >= least]
        return max(holding, key=lambda task: task.fence, default=None)

    def _can_be_shorter(self) -> list[Task]:
        return [
            task
            for task in self.running.values()
            if task.elastic and task.optional and not task.revoked and task.stopping is None
        ]

    def apply(self, relief: Relief | None, now: int) -> None:
        if not relief:
            return
        for task in filter(None, (relief.run, relief.session)):
            task.relieves, task.relieves_in = relief.head.id, relief.head.place.priority
        if relief.run and relief.to:
            self.shorten(relief.run, relief.to)
        if relief.session:
            self.halt(relief.session, now)
        self.keep_slots()

    def shorten(self, task: Task, to: Tier) -> None:
        kept = {PREFIX + tier.name for tier in self.tiers[: self.index(to.name) + 1]}
        task.revoked = {name: units for name, units in task.optional.items() if name not in kept}
        task.optional = {name: units for name, units in task.optional.items() if name in kept}
        self.bound(task, to)

    def press(self) -> None:
        """An interactive task found no slot: the youngest of the longest elastic runs is shortened."""
        holding = self._can_be_shorter()
        if holding:
            longest = max(self.index(task.tier) for task in holding)
            chosen = max(
                (task for task in holding if self.index(task.tier) == longest), key=lambda task: task.fence
            )
            self.shorten(chosen, self.tiers[longest - 1])

    def halt(self, task: Task, now: int) -> None:
        """Its units are free when the worker confirms."""
        task.stopping, task.fence = task.fence, self.next_fence(now)
        task.state, task.error_code = State.CANCELLED, "HALTED"

    def may_admit(self, task: Task, worker: Worker, now: int) -> bool:
        """A session starts on a worker with a free slot, if no waiting task could."""
        running = self.running_on(worker)
        able = can_serve(worker, task) and has_slot(worker, running, task)
        return able and self.ledger.has_room(task, now) and not self._first(worker, running, now)
