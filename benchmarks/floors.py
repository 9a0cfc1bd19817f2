"""How true an estimate can be: the estimator, beside two who know more than it can, but not what comes later.

One knows how long each task will run, the other how the runs of each kind are spread over the whole trace
(kinds by type, needs, size and user: many have few runs, so it nearly knows them too). Each plays the queue
forward when a task comes; the estimator makes a forecast then. All are asked about some of the arrivals,
evenly spread. The simulator takes the part of the gateway: it starts tasks at the same instants.
"""

import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Outcome
from benchmarks.gateway_judge import Past
from benchmarks.gateway_traces import Part, wanted
from fairlead.estimates.foresight import Foresight
from fairlead.model.priority import Priority
from fairlead.settings import Settings, Slots, WorkerSettings
from fairlead.simulate.engine import Simulation
from fairlead.simulate.observed import ObservedSimulation
from fairlead.simulate.replays import NEVER, replay
from fairlead.simulate.scenarios import Scenario, scenario
from fairlead.simulate.traces import Collector, Row
from fairlead.simulate.values import Task

ABOUT = 200  # arrivals of a trace are looked at, in equal steps
DRAWS = 15
ESTIMATOR, NAIVE = "estimator", "naive guess"
GUESSES = (ESTIMATOR, "distributions known", "durations known")

#: How long a task runs of which so much is over; ms.
Duration = Callable[[int, int], int]


@dataclass(frozen=True, slots=True)
class Guess:
    position: int
    waits: tuple[int, int, int]  #: ms, in the order of `GUESSES`


async def run(bench: Bench) -> Outcome:
    outcome = Outcome()
    for part in wanted("floors", bench, virtual=True):
        _judge(part, outcome)
    return outcome


class Guesses(Foresight):
    """Watches a replay. The estimator learns how its estimates fitted from these arrivals only."""

    def __init__(self, scene: Scenario) -> None:
        super().__init__(scene)
        self._scene, self._dice = scene, random.Random(1)
        self._is_asked = False
        self._every = max(1, len(scene.trace) // ABOUT)
        self._durations = scene.trace.durations
        self._like: dict[tuple[int, int], list[int]] = defaultdict(list)
        for number, duration in enumerate(self._durations):
            self._like[self._alike(number)].append(duration)
        self.guesses: dict[int, Guess] = {}

    def arrives(self, simulation: ObservedSimulation, task: Task) -> None:
        self._is_asked = task.number % self._every == 0
        before = sum(simulation.queued(priority) for priority in range(task.base + 1))
        super().arrives(simulation, task)
        if not self._is_asked:
            self._given.pop(task.number, None)
        elif self.estimates.p50[task.number] != NEVER:
            known = self._wait(simulation, task, lambda number, _: self._durations[number])
            drawn = statistics.median_low(self._wait(simulation, task, self._draw) for _ in range(DRAWS))
            self.guesses[task.number] = Guess(before, (self.estimates.p50[task.number], drawn, known))

    def _is_due(self, queued: Mapping[Priority, int]) -> bool:
        return self._is_asked

    def _alike(self, number: int) -> tuple[int, int]:
        return self._scene.trace.wants[number], self._scene.trace.owners[number]

    def _draw(self, number: int, over: int) -> int:
        return self._dice.choice([one for one in self._like[self._alike(number)] if one >= over])

    def _wait(self, simulation: ObservedSimulation, task: Task, duration: Duration) -> int:
        seen = simulation.look()
        running = [
            one._replace(left=duration(one.number, seen.now - one.started) - (seen.now - one.started))
            for one in seen.running
        ]
        waiting = [
            one._replace(task=one.task._replace(number=place, duration=duration(one.task.number, 0)))
            for place, one in enumerate(seen.waiting)
        ]
        newcomer = task._replace(number=len(waiting))
        ahead = Simulation(replace(seen, waiting=waiting, running=running), arrivals=[newcomer])
        return next(at for number, at in ahead.starts() if number == newcomer.number) - seen.now


def _judge(part: Part, outcome: Outcome) -> None:
    scene = _scene_of(part)
    guesses, trace = Guesses(scene), scene.trace
    played = replay(scene, observer=guesses)
    units = [request.units for request in part.requests]
    past = Past((played.ends[number], trace.durations[number], units[number]) for number in range(len(trace)))
    errors: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number, guess in guesses.guesses.items():
        waited = played.starts[number] - trace.arrivals[number]
        naive = past.guess(trace.arrivals[number], guess.position, part.slots)
        if waited and naive is not None:
            for case in (Priority(trace.bases[number]).word, "all"):
                errors[case][NAIVE].append(abs(1000 * naive - waited))
                for name, wait in zip(GUESSES, guess.waits, strict=True):
                    errors[case][name].append(abs(wait - waited))
    for case, by_name in errors.items():
        for name, some in by_name.items():
            unit = f"s, of {len(some)} that waited"
            figure = Figure(
                f"{part.name}: {case}, {name}", "error, median", unit, [statistics.median(some) / 1000]
            )
            outcome.figures.append(figure)
        for name in GUESSES:
            above, below = ((f"{part.name}: {case}, {one}", "error, median") for one in (name, NAIVE))
            outcome.compare(f"{part.name}: {case}, {name} to the naive guess", above, below)


def _scene_of(part: Part) -> Scenario:
    rows = (
        Row(
            f"{one.arrival:.3f}",
            f"{one.duration:.3f}",
            one.task_type,
            one.priority,
            one.user,
            limits=";".join(f"{name}={units}" for name, units in one.limits.items()),
            size_hint=one.size_hint,
        )
        for one in part.requests
    )
    settings = Settings(
        worker=WorkerSettings(capacity=part.slots),
        limits={name: Slots(limit=limit) for name, limit in part.limits.items()},
    )
    return scenario(part.name, part.name, Collector(part.name).collect(enumerate(rows, 2)), settings)
