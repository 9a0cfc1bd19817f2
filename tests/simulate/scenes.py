"""Small random scenes, and the same scene as a snapshot for the engine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from fairlead.model.priority import Priority
from fairlead.rules.fairness import stride_of
from fairlead.rules.limits import Limit, Rate, Slots
from fairlead.rules.tiers import sizes_of_tiers
from fairlead.rules.values import NewTask, Policy, Tier, Worker
from fairlead.simulate.engine import Simulation
from fairlead.simulate.values import Kind, Running, Snapshot, Task, Waiting
from tests.simulate.brute import Player, Scene

CAPABILITIES = (frozenset[str](), frozenset({"gpu"}), frozenset({"gpu", "big"}))
TIERS = (Tier("fast", 20), Tier("medium", 60, share=60), Tier("slow", 200, slots=1))


def random_scene(dice: random.Random) -> Scene:
    policy = _policy(dice)
    limits: dict[str, Limit] = {name: _slots(dice) for name in "abc"}
    for name in "rs":
        limits[name] = Rate(dice.randint(1, 3), dice.choice([50, 90, 400]), dice.randint(1, 3))
    if dice.random() < 0.1:
        limits["a"].paused = True
    workers = [_worker(dice, number) for number in range(dice.randint(1, 3))]
    limits |= {
        name: Slots(size)
        for name, size in sizes_of_tiers(policy.tiers, sum(worker.capacity for worker in workers)).items()
    }
    named = dice.sample(sorted(name for name in limits if ":" not in name), dice.randint(0, 4))
    tasks, now = [], 0
    for number in range(dice.randint(1, 40)):
        now += dice.choice([0, 0, 0, 1, 3, 10, 40])
        tasks.append((now, _task(dice, number, named, limits, policy), dice.choice([0, 1, 5, 20, 50, 200])))
    paused = frozenset(dice.sample("xyz", dice.choice([0, 0, 0, 1])))
    return Scene(policy, workers, limits, tasks, paused)


def _policy(dice: random.Random) -> Policy:
    low, medium = dice.choice([(0, 0), (60, 100), (60, 0), (30, 50), (0, 50)])
    return Policy(
        budget=dice.choice([0, 1, 2, 5]),
        low_to_medium=low,
        low_to_high=dice.choice([0, 90, 150]) if low else 0,
        medium_to_high=medium,
        hold_after=dice.choice([0, 10, 30]),
        hold_for=dice.choice([40, 300]),
        timed_work=10**9,
        worker_ttl=10**12,
        hold_looks=dice.choice([1, 8]),
        most_holds=dice.choice([1, 64]),
        tiers=TIERS[: dice.randint(1, 3)] if dice.random() < 0.4 else (),
    )


def _slots(dice: random.Random) -> Slots:
    return Slots(dice.choice([0, 1, 1, 2, 2, 3]))


def _worker(dice: random.Random, number: int) -> Worker:
    capacity = dice.randint(1, 4)
    types = frozenset(dice.sample("xyz", 2)) if dice.random() < 0.3 else None
    reserve = dice.randint(0, capacity) if dice.random() < 0.3 else 0
    return Worker(f"w{number}", dice.choice(CAPABILITIES), types, capacity, reserve)


def _task(
    dice: random.Random, number: int, named: Sequence[str], limits: dict[str, Limit], policy: Policy
) -> NewTask:
    needs = {}
    for name in dice.sample(named, min(len(named), dice.randint(0, 3))):
        units = dice.choice([1, 1, 1, 1, 2])
        if limits[name].accepts(units):
            needs[name] = units
    return NewTask(
        id=f"t{number:04}",
        type=dice.choice("xyz"),
        base=dice.choice(list(Priority)),
        fair=dice.choice("uvw"),
        weight=dice.choice([1.0, 1.0, 3.0]),
        capabilities=dice.choice(CAPABILITIES) if dice.random() < 0.3 else CAPABILITIES[0],
        limits=needs,
        timeout=10**12,
        duration=dice.choice([None, None, *(tier.name for tier in policy.tiers)]) if policy.tiers else None,
    )


class Kinds:
    """Each kind once."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._kinds: dict[object, Kind] = {}

    def of(self, new: NewTask) -> Kind:
        like = (new.type, new.capabilities, tuple(sorted(new.limits.items())), new.duration)
        if like not in self._kinds:
            self._kinds[like] = Kind.of(
                new.type, new.capabilities, new.limits, self._policy.tiers, new.duration
            )
        return self._kinds[like]

    def same(self) -> dict[int, object]:
        """For `deepcopy`: a copy of a kind would be another kind."""
        return {id(kind): kind for kind in self._kinds.values()}


def tasks_of(scene: Scene, kinds: Kinds) -> Iterator[Task]:
    for number, (at, new, lasts) in enumerate(scene.tasks):
        yield Task(number, kinds.of(new), new.base, new.fair, at, lasts, new.weight)


def begin(scene: Scene) -> Snapshot:
    return Snapshot(
        policy=scene.policy, workers=scene.workers, limits=scene.limits, paused_types=scene.paused_types
    )


def snapshot_of(player: Player, kinds: Kinds) -> tuple[Snapshot, list[str]]:
    """Of the twin as it is now, and the ids of the tasks that wait or are still to come."""
    twin, scene = player.twin, player.scene
    twin.reindex()
    weight_of = {new.id: new.weight for _, new, _ in scene.tasks}
    new_of = {new.id: new for _, new, _ in scene.tasks}
    ids = [*twin.queued, *(new.id for _, new, _ in scene.tasks[player.arrived :])]
    waiting = [
        Waiting(
            Task(
                number,
                kinds.of(new_of[task.id]),
                task.base,
                task.fair,
                task.arrival,
                player.duration[task.id],
                weight_of[task.id],
            ),
            task.place,
            task.tag,
            task.seq,
            stride_of(task.weight, task.factor),
        )
        for number, task in enumerate(twin.queued.values())
    ]
    running = [
        Running(
            player.ends[task.id] - player.now,
            tuple(need for need in sorted(twin.ledger.taken[task.fence].items()) if is_slots(scene, need[0])),
            task.worker,
            task.base,
            task.fair,
            task.started,
            twin.index(task.tier) if task.elastic and task.tier else None,
            -1 - int(task.id[1:]),
        )
        for task in sorted(twin.running.values(), key=lambda task: task.fence)
    ]
    holds = {name: hold.since for name, hold in twin.ledger.holds.items()}
    snapshot = Snapshot(
        player.now,
        scene.policy,
        scene.workers,
        twin.ledger.limits,
        scene.paused_types,
        waiting,
        running,
        twin.shares.ledgers,
        twin.turns.streaks,
        twin.shares.pace,
        twin.shares.mean,
        companions=twin.ledger.companions,
        held=holds,
        asks=twin.ledger.patience.asks_at,
        last_seq=twin.last_seq,
    )
    return snapshot, ids


def is_slots(scene: Scene, name: str) -> bool:
    return isinstance(scene.limits[name], Slots)


def rest_of(player: Player, kinds: Kinds, first: int) -> Iterator[Task]:
    """The tasks that are still to come."""
    for at, new, lasts in player.scene.tasks[player.arrived :]:
        yield Task(first, kinds.of(new), new.base, new.fair, at, lasts, new.weight)
        first += 1


def simulate(scene: Scene) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """The starts and the ends."""
    ends: dict[str, int] = {}

    def ended(number: int, at: int) -> None:
        ends[scene.tasks[number][1].id] = at

    simulation = Simulation(begin(scene), arrivals=tasks_of(scene, Kinds(scene.policy)), ended=ended)
    return [(scene.tasks[number][1].id, at) for number, at in simulation.starts()], ends
