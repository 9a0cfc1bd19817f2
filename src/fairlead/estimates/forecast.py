"""The forecast: the rule is run forward several times, and the starts become curves."""

from __future__ import annotations

import math
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from fairlead.estimates.calibration import BOUNDS_MS
from fairlead.estimates.curve import GONE_AT, curve
from fairlead.estimates.knowledge import Knowledge
from fairlead.estimates.picture import Picture
from fairlead.estimates.scene import Known, Scene, limit_of
from fairlead.rules.values import Place
from fairlead.simulate.engine import Simulation
from fairlead.simulate.values import Running, Task

REPLICAS = 16
MOST_STARTS, MOST_ARRIVALS = 500, 1_000  # of a replica
MOST_FAR_STARTS, MOST_FAR_ARRIVALS = 20_000, 4_000  # of the run that shows what is beyond
LEAST_POINTS, MOST_POINTS = 4, 40  # of a curve
POINTS = 10_000  # of all curves
FAR_MS = 30 * 24 * 3600 * 1000
ARRIVALS_SEED = 1 << 32

Starts = dict[int, int]  # ms after the snapshot by number of the task


@dataclass
class Outcome:
    """When the tasks of one run started, and when each of its starts was, arrivals included."""

    starts: Starts = field(default_factory=dict)
    instants: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Played:
    """What became of a scene: when each of its known tasks started, by replica."""

    scene: Scene
    head: dict[str, Any]
    starts: list[list[float]]


def forecast(picture: Picture, knowledge: Knowledge) -> dict[str, Any]:
    """The fields of the forecast by name."""
    return fields_of(play(picture, knowledge))


def fields_of(played: Played) -> dict[str, Any]:
    paces = {f"soon@{name}": [round(ms)] for name, ms in played.scene.paces().items()}
    return {"head": played.head} | paces | curves(played)


def play(picture: Picture, knowledge: Knowledge) -> Played:
    scene = Scene(picture, knowledge.durations, knowledge.arrivals)
    head = {
        "at": picture.at,
        "run": round(knowledge.durations.of_all().mean),
        "lengths": list(BOUNDS_MS),
        "corrections": knowledge.calibration.corrections(),
    }
    return Played(scene, head, estimated_starts(scene))


def curves(played: Played) -> dict[str, list[int]]:
    scene, starts = played.scene, played.starts
    on_curve: dict[str, list[int]] = {}
    for number, known in enumerate(scene.known):
        for name in known.curves:
            on_curve.setdefault(name, []).append(number)
    most = max(LEAST_POINTS, min(MOST_POINTS, POINTS // max(1, len(on_curve))))
    ranks, gone = _ranks(scene), _Gone(played)
    found = {}
    for name, numbers in on_curve.items():
        points = [scene.known[number].point(ranks[number], starts[number]) for number in numbers]
        ahead = _ahead(name, scene.picture)
        found[name] = curve(points, ahead, scene.pace(name, numbers), gone.of(name), most)
    return found


def _ahead(name: str, picture: Picture) -> int:
    """How many wait ahead of a newcomer, or for this limit."""
    limit = limit_of(name)
    better = sum(picture.queued(one) for one in Place if one[0] <= name[0])
    return min(better, int(picture.limits[limit].get("waiting", 0))) if limit else better


def _better(place: str, picture: Picture) -> int:
    """How many wait in better priorities."""
    return sum(picture.queued(one) for one in Place if one[0] < place[0])


def _ranks(scene: Scene) -> list[int]:
    """How many are ahead of each task: in better priorities, and in its place."""
    ranks = [0] * len(scene.known)
    counts = {place: _better(place, scene.picture) for place in Place}
    for number in sorted(range(len(ranks)), key=lambda number: scene.known[number].position):
        known = scene.known[number]
        ranks[number] = counts[Place(known.place)]
        counts[Place(known.place)] += known.stands_for
    return ranks


class _Gone:
    """How many of those that wait have started some time later."""

    def __init__(self, played: Played) -> None:
        self._known = played.scene.known
        self._shares = [_shares(starts) for starts in played.starts]
        self._of: dict[str, list[float]] = {}
        for known, shares in zip(self._known, self._shares, strict=True):
            limits = {limit for name in known.curves if (limit := limit_of(name))}
            for place in Place:
                if place[0] > known.place[0] or place == known.place:
                    for name in (place, *(f"{place}@{limit}" for limit in limits)):
                        counts = self._of.setdefault(name, [0.0] * len(GONE_AT))
                        for at, share in enumerate(shares):
                            counts[at] += share * known.stands_for

    def of(self, name: str) -> list[float]:
        limit = limit_of(name)
        return self._of.get(f"{name[:2]}@{limit}" if limit else name[:2], [0.0] * len(GONE_AT))


def _shares(starts: Sequence[float]) -> list[float]:
    ordered = sorted(starts)
    return [bisect_right(ordered, at) / len(ordered) for at in GONE_AT]


def estimated_starts(scene: Scene) -> list[list[float]]:
    """Of each task, by replica; infinite where nobody knows."""
    simulation = Simulation(scene.snapshot)
    mean = _run(scene, simulation, Mean(scene, ARRIVALS_SEED), MOST_FAR_STARTS, MOST_FAR_ARRIVALS)
    replicas = [
        _run(scene, simulation, Chance(scene, seed), MOST_STARTS, MOST_ARRIVALS) for seed in range(REPLICAS)
    ]
    return [[_start_of(number, replica, mean) for replica in replicas] for number in range(len(scene.known))]


def _start_of(number: int, replica: Outcome, mean: Outcome) -> float:
    """Beyond the end of a replica, the mean run continues; how far the two differ matters less and less."""
    if number in replica.starts:
        return replica.starts[number]
    expected = mean.starts.get(number)
    if expected is None:
        return math.inf
    count = min(len(replica.instants), len(mean.instants))
    if not count or not mean.instants[count - 1]:
        return expected
    here, there = replica.instants[count - 1], mean.instants[count - 1]
    drift = 1 + (here / there - 1) * math.sqrt(min(1.0, there / max(1, expected)))
    return max(float(replica.instants[-1]), expected * drift)


def _run(scene: Scene, simulation: Simulation, chance: Chance, most: int, arriving: int) -> Outcome:
    arrivals = islice(scene.arrivals(chance.seed, chance.share), arriving)
    run = simulation.fork(arrivals=arrivals, duration=chance.duration, left=chance.left)
    outcome, now, left = Outcome(), scene.snapshot.now, len(scene.known)
    for number, at in run.starts(now + FAR_MS, most):
        outcome.instants.append(at - now)
        if number < len(scene.known):
            outcome.starts[number] = at - now
            left -= 1
            if not left:
                break
    return outcome


class Chance:
    """How long things take in one run. Each draw depends on the task alone, and not on what else waits."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self._scene, self.seed = scene, seed

    def share(self, arrival: int) -> float:
        return uniform(f"arrival {arrival}", self.seed)

    def duration(self, task: Task) -> int:
        if task.number >= len(self._scene.known):
            return task.duration
        return round(self._lasts(task.number, self._scene.known[task.number]))

    def _lasts(self, number: int, known: Known) -> float:
        if known.stands_for > 1:
            return float(self._scene.spread(number).mean * known.stands_for)
        return self.single(number)

    def single(self, number: int) -> float:
        """Of one task, also if it represents others."""
        task_id = self._scene.known[number].task_id
        return self._scene.spread(number).draw(uniform(task_id, self.seed))

    def left(self, running: Running) -> int:
        run = self._scene.runs[running.number]
        return self._scene.left_of(run, uniform(run.holder, self.seed))


class Mean(Chance):
    """Everything takes as long as usual."""

    def _lasts(self, number: int, known: Known) -> float:
        return float(self._scene.spread(number).mean * known.stands_for)

    def left(self, running: Running) -> int:
        return self._scene.left_of(self._scene.runs[running.number], 0.5)


def uniform(name: str, seed: int) -> float:
    """Between 0 and 1, the same for the same name and seed."""
    mixed = (zlib.crc32(name.encode()) * 0x9E3779B97F4A7C15 + seed * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    mixed = ((mixed ^ (mixed >> 31)) * 0x94D049BB133111EB) & (2**64 - 1)
    return (mixed ^ (mixed >> 29)) / 2**64
