"""The picture of a replay says everything that decides about what starts next."""

import random
from collections.abc import Iterator, Sequence

import pytest

from fairlead.estimates.knowledge import Knowledge
from fairlead.estimates.picture import Picture
from fairlead.estimates.pictures import Pictures
from fairlead.estimates.scene import Scene
from fairlead.settings import Rate, Slots
from fairlead.settings.tiers import Tier
from fairlead.simulate.engine import Simulation
from fairlead.simulate.observed import ObservedSimulation
from fairlead.simulate.replays import NEVER, replay
from fairlead.simulate.scenarios import Scenario
from fairlead.simulate.traces import Row
from fairlead.simulate.values import Task
from tests.simulate.traces import scenario_of

LIMITS: dict[str, Slots | Rate] = {"gpu": Slots(limit=2), "api": Rate.of("20/min", burst=2)}
TIERS = {"fast": Tier(seconds=20), "slow": Tier(seconds=90, limit="50%")}


class Photographer:
    """Takes a picture when the last task of a trace arrives."""

    def __init__(self, scenario: Scenario) -> None:
        self._last, self._pictures = len(scenario.trace) - 1, Pictures(scenario)
        self.picture: Picture | None = None

    def arrives(self, simulation: ObservedSimulation, task: Task) -> None:
        if task.number == self._last:
            self.picture = self._pictures.picture(simulation.look())

    def started(self, number: int, at: int) -> None: ...

    def ended(self, number: int, at: int) -> None: ...


def crowd(dice: random.Random, with_tiers: bool, count: int = 40) -> Iterator[Row]:
    """No task needs several limits that overlap: since when it holds them is not in a picture."""
    now = 0.0
    for _ in range(count):
        yield Row(
            arrival=f"{now:.3f}",
            duration=f"{dice.uniform(1, 60):.3f}",
            task_type=dice.choice(["draw", "chat"]),
            priority=dice.choice(["high", "medium", "low", "low"]),
            user_id=dice.choice("abc"),
            limits="" if with_tiers else dice.choice(["", "", "gpu=1", "gpu=2", "api=1"]),
            tier=dice.choice(["", "fast", "slow"]) if with_tiers else "",
        )
        now += dice.uniform(0, 8)


@pytest.mark.parametrize("seed", range(12))
def test_what_starts_after_a_picture_is_what_starts_in_the_replay(seed: int) -> None:
    tiers = TIERS if seed % 2 else {}
    rows = list(crowd(random.Random(seed), with_tiers=bool(tiers)))
    whole = scenario_of(rows, limits=LIMITS, tiers=tiers)
    photographer = Photographer(whole)
    replay(whole, observer=photographer)
    picture = photographer.picture
    assert picture and picture.waiting and picture.running
    done = replay(scenario_of(rows[:-1], limits=LIMITS, tiers=tiers))
    assert continued(picture, whole, done.ends) == {
        number: start for number, start in enumerate(done.starts) if start >= picture.at and start != NEVER
    }


def continued(picture: Picture, scenario: Scenario, ends: Sequence[int]) -> dict[int, int]:
    """When tasks start if the replay is continued from the picture alone; runs take what they take."""
    knowledge = Knowledge()
    scene = Scene(picture, knowledge.durations, knowledge.arrivals)
    simulation = Simulation(
        scene.snapshot,
        duration=lambda task: scenario.trace.durations[int(scene.known[task.number].task_id or 0)],
        left=lambda running: ends[int(scene.runs[running.number].holder)] - picture.at,
    )
    found = ((scene.known[number].task_id, at) for number, at in simulation.starts())
    return {int(task_id): at for task_id, at in found if task_id}
