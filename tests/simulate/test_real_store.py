"""The store starts the same tasks at the same instants as the simulator, if its clock leaps to each event."""

import random
from collections.abc import Callable, Iterator

import pytest

from benchmarks.gateway_traces import Wanted
from benchmarks.virtual_clock import AWAKE, Answer, VirtualClock, played, simulated
from fairlead.model.task import NewTask
from fairlead.settings import Promotion, Scheduling, Settings, Slots
from fairlead.store.store import Store
from fairlead.testing import FakeClock

SLOTS, LIMITS = 6, {"gpu": 2, "cpus": 6, "disk": 1}
SETTINGS = Settings(
    promotion=Promotion(low_to_medium_seconds=20, medium_to_high_seconds=45),
    scheduling=Scheduling(hold_after_seconds=3),
    worker=AWAKE,
)


def trace(seed: int) -> Iterator[Wanted]:
    """More than there is room for, at whole seconds, so that several things happen at an instant."""
    dice, now = random.Random(seed), 0
    for _ in range(60):
        now += dice.choice([0, 0, 1, 1, 2, 3])
        needs: dict[str, int] = dice.choice(
            [{}, {"cpus": 1}, {"cpus": 2}, {"cpus": 5}, {"disk": 1, "gpu": 1}, {"gpu": 1}, {"disk": 1}]
        )
        priority = dice.choice(["high", "medium", "low", "low"])
        lasts = dice.choice([0, 2, 3, 8, 20])
        yield Wanted(now, lasts, dice.choice("xy"), dice.choice(["ann", "bob", "cid"]), priority, needs)


@pytest.mark.parametrize("seed", range(3))
async def test_the_store_starts_tasks_when_the_simulator_does(
    open_store: Callable[..., Store], seed: int
) -> None:
    clock, tasks = FakeClock(), played(list(trace(seed)))
    store = open_store(clock=clock, settings=SETTINGS)
    await store.open()
    for name, limit in LIMITS.items():
        await store.limits.set(name, Slots(limit=limit))

    async def submit(one: Wanted) -> Answer:
        new = NewTask(task_type=one.task_type, priority=one.priority, user_id=one.user, limits=one.limits)
        return {"task_id": (await store.submit_one(new)).task_id}

    driven = VirtualClock(store, clock, tasks, SLOTS)
    await driven.run(submit)
    expected = simulated(tasks, SLOTS, LIMITS, SETTINGS)
    assert len(expected) == len(tasks)
    assert [(number, tasks[number].started) for number in driven.order] == expected
    assert max(at - tasks[number].arrival for number, at in expected) > 20_000, "some were promoted"
