"""The same schedule played on the rules: at every instant each worker looks at every task that waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

from fairlead.rules.ageing import STEPS
from fairlead.rules.limits import Limit, Rate
from fairlead.rules.tiers import Relief
from fairlead.rules.twin import Twin
from fairlead.rules.values import NewTask, Policy, Task, Worker

FOREVER = 10**12


@dataclass(frozen=True)
class Scene:
    """Tasks by the order of their arrivals, each with how long its run takes."""

    policy: Policy
    workers: Sequence[Worker]
    limits: Mapping[str, Limit]
    tasks: Sequence[tuple[int, NewTask, int]]  #: arrival, task, duration
    paused_types: frozenset[str] = field(default_factory=frozenset)


class Player:
    """A twin with a virtual clock."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.twin = Twin(scene.policy)
        self.twin.ledger.limits = {name: copy(limit) for name, limit in scene.limits.items()}
        for worker in scene.workers:
            self.twin.register(worker, 0)
        self.twin.paused_types |= scene.paused_types
        self.now = 0
        self.arrived = 0
        self.duration = {new.id: duration for _, new, duration in scene.tasks}
        self.ends: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self.fences: dict[str, int] = {}
        self.seen: Counter[str] = Counter()  #: what the schedule had in it

    def play(self, until: int = FOREVER) -> Iterator[tuple[str, int]]:
        """The id of each task that starts, and when."""
        while True:
            self.advance()
            yield from self.start_all()
            at = self.next_instant()
            if at is None or at > until:
                return
            self.now = at

    def advance(self) -> None:
        now, twin = self.now, self.twin
        for task_id in sorted(self.ends, key=lambda one: (self.ends[one], self.fences[one])):
            if self.ends[task_id] <= now:
                twin.complete(task_id, twin.tasks[task_id].fence, now)
                self.ended[task_id] = now
                del self.ends[task_id]
        while self.arrived < len(self.scene.tasks) and self.scene.tasks[self.arrived][0] <= now:
            twin.submit(self.scene.tasks[self.arrived][1], now)
            self.arrived += 1
        twin.promote(now)
        if any(len(twin.running_on(worker)) < worker.capacity for worker in twin.workers.values()):
            twin.make_holds(now)
            self.seen["held"] += any(hold.since == now for hold in twin.ledger.holds.values())

    def start_all(self) -> Iterator[tuple[str, int]]:
        while step := self.best_step():
            if isinstance(step, Relief):
                self.relieve(step)
                continue
            task, worker = step
            self.seen["promoted"] += task.place.promoted
            self.seen["rated"] += any(name in task.limits for name in "rs")
            self.seen["waited"] += self.now > task.arrival
            self.twin.start(task, worker, FOREVER, self.now)
            self.fences[task.id] = task.fence
            self.ends[task.id] = self.end_of(task, self.now + self.duration[task.id])
            yield task.id, self.now

    def relieve(self, relief: Relief) -> None:
        run = relief.run
        assert run is not None
        self.seen["shortened"] += 1
        self.twin.apply(relief, self.now)
        self.twin.confirm(run)
        self.ends[run.id] = max(self.now, self.end_of(run, self.ends[run.id]))

    def end_of(self, task: Task, end: int) -> int:
        return min(end, task.deadline) if task.bounded else end

    def best_step(self) -> Relief | tuple[Task, Worker] | None:
        """The best of what each worker would do next; the first worker of those that would do the same."""
        twin, found = self.twin, []
        for worker in twin.workers.values():
            step = twin.next_step(worker, twin.running_on(worker), twin.queued.values(), self.now)
            if step:
                head = step.head if isinstance(step, Relief) else step
                found.append((twin.turns.rank(head), step if isinstance(step, Relief) else (step, worker)))
        return min(found, key=lambda pair: pair[0])[1] if found else None

    def next_instant(self) -> int | None:
        twin = self.twin
        instants = list(self.ends.values())
        if self.arrived < len(self.scene.tasks):
            instants.append(self.scene.tasks[self.arrived][0])
        instants += [at for place in STEPS for at, _ in twin._promotions(place)]
        instants += [at for task in twin.queued.values() for at in self.refills(task)]
        ends = (hold.since + twin.policy.hold_for for hold in twin.ledger.holds.values())
        instants += [at for at in ends if at > self.now]
        return min(instants, default=None)

    def refills(self, task: Task) -> Iterator[int]:
        """When the rates that it lacks have refilled, if it can ever start."""
        limits = self.twin.ledger.limits
        can = all(limits[name].fits(units) and not limits[name].paused for name, units in task.limits.items())
        if can and self.twin.is_served(task):
            for name, units in task.limits.items():
                limit = limits[name]
                if isinstance(limit, Rate) and limit.room(self.now) < units:
                    yield limit.refilled_at(units, self.now)
