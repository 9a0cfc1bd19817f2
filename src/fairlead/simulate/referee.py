"""Checks starts against the rule by looking at every waiting task, without the indexes of the engine.

What is used of the limits, and which slots are taken, is counted again from what runs. That takes time: the
first starts are all checked, later ones so that each start costs two looks at a task or a run on average.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fairlead.model.priority import Priority
from fairlead.rules.values import Worker
from fairlead.simulate.engine import Simulation
from fairlead.simulate.queues import SubQueue
from fairlead.simulate.runs import Run
from fairlead.simulate.values import Kind, Task

ALL_OF = 2_000  #: searches for a start that are all checked
LOOKS = 2

Rank = tuple[int, bool, int, int]


class CheckedSimulation(Simulation):
    """Counts the searches that were checked, and those that should have found another task."""

    checks = inversions = 0
    _calls = _next_check = 0

    def _start_best(self) -> int | None:
        self._calls += 1
        if self._calls <= self._next_check:
            return super()._start_best()
        ranks = {task.number: (rank, task, queue) for rank, task, queue in self._waiting()}
        if self._calls > ALL_OF:
            self._next_check = self._calls + (len(ranks) + len(self._ends)) // LOOKS
        best = self._best_startable(sorted(ranks.values(), key=lambda one: one[0]))
        number = super()._start_best()
        self.checks += 1
        if best is not None and best[1] != number and (number is None or best[0] < ranks[number][0]):
            self.inversions += 1
        return number

    def _waiting(self) -> Iterator[tuple[Rank, Task, SubQueue]]:
        budget = self._policy.budget
        for queue in self._heads.all_queues():
            priority, promoted = queue.place >> 1, bool(queue.place & 1)
            other_turn = promoted != (self._streaks[priority] >= budget) if budget else False
            for tag, seq, task, _ in (*queue.earlier, *queue.later):
                if self._where[task.number] == queue.place:
                    yield (priority, other_turn, tag, seq), task, queue

    def _best_startable(self, waiting: list[tuple[Rank, Task, SubQueue]]) -> tuple[Rank, int] | None:
        runs = {run.fence: run for end, _, run in self._ends if run.end == end}
        used: Counter[str] = Counter()
        for run in runs.values():
            used.update(dict(run.needs))
        cannot: set[tuple[Kind, int]] = set()  # what is alike cannot start either
        for rank, task, queue in waiting:
            like = (task.kind, queue.place)
            if like in cannot:
                continue
            if self._has_room(queue, used) and self._has_slot(task, list(runs.values())):
                return rank, task.number
            cannot.add(like)
        return None

    def _has_room(self, queue: SubQueue, used: Counter[str]) -> bool:
        return all(units <= self._room(name, used[name], queue) for name, units in queue.needs)

    def _room(self, name: str, used: int, queue: SubQueue) -> int:
        use = self._limits.uses[name]
        if use.rate is not None:
            return use.rate.room(self.now)
        hold = use.hold
        is_kept = hold is not None and hold.queue != queue.number and queue.place >> 1 >= hold.priority
        return use.size - used - (hold.units[name] if hold is not None and is_kept else 0)

    def _has_slot(self, task: Task, runs: list[Run]) -> bool:
        for number, worker in enumerate(self.snapshot.workers):
            here = [run.base for run in runs if run.worker == number]
            room = worker.capacity if task.base == Priority.HIGH else worker.capacity - worker.reserve
            taken = here if task.base == Priority.HIGH else [base for base in here if base != Priority.HIGH]
            if self._serves(worker, task.kind) and len(here) < worker.capacity and len(taken) < room:
                return True
        return False

    def _serves(self, worker: Worker, kind: Kind) -> bool:
        may = kind.type not in self.snapshot.paused_types
        knows = worker.types is None or kind.type in worker.types
        return may and knows and kind.capabilities <= worker.capabilities
