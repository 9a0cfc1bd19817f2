"""A simulation with an observer, which may look at it whenever a task arrives, but never ahead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from fairlead.rules import fairness, limits
from fairlead.simulate.board import Ended
from fairlead.simulate.limits import NOBODY
from fairlead.simulate.referee import CheckedSimulation
from fairlead.simulate.values import NATIVE, PLACES, Running, Snapshot, Task, Waiting


class Observer(Protocol):
    def arrives(self, simulation: ObservedSimulation, task: Task) -> None:
        """The task is about to be queued."""

    def started(self, number: int, at: int) -> None: ...

    def ended(self, number: int, at: int) -> None: ...


class ObservedSimulation(CheckedSimulation):
    def __init__(
        self, snapshot: Snapshot, observer: Observer | None, *, arrivals: Iterable[Task], ended: Ended
    ) -> None:
        self._observer = observer
        super().__init__(snapshot, arrivals=arrivals, ended=ended)

    def submit(self, task: Task) -> None:
        if self._observer:
            self._observer.arrives(self, task)
        super().submit(task)

    def next_position(self, task: Task) -> tuple[int, int]:
        """The tag and seq that it gets if it is queued now."""
        return self._shares.by_place[NATIVE[task.base]].next_tag(task.account), self._seq + 1

    def rank_of(self, task: Task, tag: int) -> int:
        """How many are ahead of a task that is queued now: in better priorities, and in its place."""
        place, count = NATIVE[task.base], sum(self.queued(better) for better in range(task.base))
        for queue in self._heads.all_queues():
            if queue.place == place:
                entries = (*queue.earlier, *queue.later)
                count += sum(t <= tag and self._where[one.number] == place for t, _, one, _ in entries)
        return count

    def queued(self, priority: int) -> int:
        """How many wait in this priority, promoted ones included."""
        ledgers = {id(ledger): ledger for ledger in self._shares.by_place[2 * priority : 2 * priority + 2]}
        return sum(ledger.waiting for ledger in ledgers.values())

    def free_slots(self, task: Task) -> int:
        return self._fleet.free_slots(self._fleet.audience(task.kind), task.base)

    def room(self, limit: str, priority: int) -> int:
        return self._limits.uses[limit].room(priority, NOBODY, self.now, limit)

    def look(self) -> Snapshot:
        """What can be seen now. How long the runs still take cannot: `left` is 0."""
        waiting = [
            Waiting(task, PLACES[queue.place], tag, seq, stride)
            for queue in self._heads.all_queues()
            for tag, seq, task, stride in (*queue.earlier, *queue.later)
            if self._where[task.number] == queue.place
        ]
        return Snapshot(
            now=self.now,
            policy=self._policy,
            workers=self.snapshot.workers,
            limits={name: self._seen(name, limit) for name, limit in self.snapshot.limits.items()},
            waiting=waiting,
            running=self._seen_runs(),
            ledgers={
                place: fairness.Ledger(ledger.v, {**ledger.earlier, **ledger.fin})
                for place, ledger in zip(PLACES, self._shares.by_place, strict=True)
            },
            streaks=dict(enumerate(self._streaks)),  # type: ignore[arg-type]
            last_seq=self._seq,
        )

    def _seen(self, name: str, limit: limits.Limit) -> limits.Limit:
        rate = self._limits.uses[name].rate
        return replace(rate) if rate else limit

    def _seen_runs(self) -> list[Running]:
        runs = sorted((fence, run) for end, fence, run in self._ends if run.end == end)
        workers = self.snapshot.workers
        return [
            Running(
                left=0,
                needs=run.needs,
                worker=workers[run.worker].id,
                base=run.base,
                account=run.account,
                started=run.started,
                tier=run.tier if run.tier >= 0 else None,
                number=run.number,
            )
            for _, run in runs
        ]
