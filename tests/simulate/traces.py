"""Made-up traces, as scenarios."""

import random
from collections.abc import Iterable, Mapping

from fairlead.settings import Rate, Settings, Slots, WorkerSettings
from fairlead.settings.tiers import TierEntry
from fairlead.simulate.scenarios import Scenario, scenario
from fairlead.simulate.traces import Collector, Row

BUSY = 0.95  # of the slots, on average
PRIORITIES = ("high", "medium", "medium", "low", "low")


def scenario_of(
    rows: Iterable[Row],
    slots: int = 3,
    limits: Mapping[str, Slots | Rate] | None = None,
    tiers: Mapping[str, TierEntry] | None = None,
) -> Scenario:
    settings = Settings(
        worker=WorkerSettings(capacity=slots),
        limits=dict(limits or {"gpu": Slots(limit=2)}),
        tiers=dict(tiers or {}),
    )
    trace = Collector("made up").collect(enumerate(rows, 2))
    return scenario("now", "made up", trace, settings)


def stationary(count: int, seed: int, slots: int = 3) -> list[Row]:
    """Tasks of two types come at random and take long or short, at the same rate all the time."""
    dice, now, rows = random.Random(seed), 0.0, []
    for _ in range(count):
        draws = dice.random() < 0.3
        duration = dice.lognormvariate(3 if draws else 1.5, 0.5)
        rows.append(
            Row(
                arrival=f"{now:.3f}",
                duration=f"{duration:.3f}",
                task_type="draw" if draws else "chat",
                priority=dice.choice(PRIORITIES),
                user_id=dice.choice("abcd"),
                limits="gpu=1" if draws else "",
            )
        )
        now += dice.expovariate(BUSY * slots / 10.3)  # the mean duration
    return rows
