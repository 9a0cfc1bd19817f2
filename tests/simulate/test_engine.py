"""The engine makes the same choices as the rules, which look at every task at every instant."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from fairlead.rules.limits import Slots
from fairlead.rules.values import NewTask, Policy, Worker
from fairlead.simulate import limits as engine_limits
from tests.simulate.brute import FOREVER, Scene
from tests.simulate.comparing import compare_from_a_snapshot, compare_from_the_start
from tests.simulate.scenes import simulate

SCENES = 300


@pytest.mark.parametrize("many", [engine_limits.MANY, 2])
@pytest.mark.parametrize("compare", [compare_from_the_start, compare_from_a_snapshot])
def test_the_engine_starts_exactly_what_the_rules_start(
    compare: Callable[[int], Counter[str]], many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_limits, "MANY", many)  # with 2, sub-queues wait for several limits together
    seen: Counter[str] = Counter()
    for seed in range(SCENES):
        seen += compare(seed)
    assert seen["starts"] > 2_000
    assert min(seen[what] for what in ("waited", "promoted", "rated", "held", "shortened")) > 10


def nested_scene(dice: random.Random, *, nested: bool) -> Scene:
    """All tasks are of one account and priority: whoever comes later is behind."""
    sets = [{}, {"a": 1}, {"a": 1, "b": 1}, {"c": 1}] if nested else [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}]
    tasks, now = [], 0
    for number in range(dice.randint(4, 20)):
        now += dice.choice([0, 0, 1, 5])
        new = NewTask(f"t{number:04}", "x", limits=dice.choice(sets), timeout=FOREVER)
        tasks.append((now, new, dice.choice([1, 5, 9, 20])))
    limits = {name: Slots(dice.randint(1, 2)) for name in "abc"}
    policy = Policy(low_to_medium=0, medium_to_high=0, low_to_high=0, hold_after=FOREVER, timed_work=FOREVER)
    return Scene(policy, [Worker("w", capacity=dice.randint(1, 4))], limits, tasks)


def is_delayed_by_those_behind(scene: Scene) -> bool:
    """Whether a task starts later than if nobody came after it."""
    starts = dict(simulate(scene)[0])
    for ahead in range(1, len(scene.tasks)):
        alone = Scene(scene.policy, scene.workers, scene.limits, scene.tasks[:ahead])
        if any(starts[task_id] != at for task_id, at in simulate(alone)[0]):
            return True
    return False


def test_with_nested_limits_tasks_behind_never_delay_those_ahead() -> None:
    dice = random.Random(1)
    assert not any(is_delayed_by_those_behind(nested_scene(dice, nested=True)) for _ in range(200))


def test_with_overlapping_limits_they_may() -> None:
    # which is what holds are for, and shows that the test above can fail
    dice = random.Random(1)
    assert any(is_delayed_by_those_behind(nested_scene(dice, nested=False)) for _ in range(200))
