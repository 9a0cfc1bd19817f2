"""When a job will be done: a sum over its stages, in which the longest step of each counts."""

from fairlead.estimates.histogram import Distribution, bucket_of
from fairlead.estimates.jobs import StepLeft, done_within
from fairlead.model.estimate import Estimate

NOW = 1_000_000


def always(seconds: float) -> Distribution:
    """All runs take about this long."""
    return Distribution({bucket_of(1000 * seconds): 1.0})


def waits(stage: int, seconds: float, p50: float, p90: float) -> StepLeft:
    return StepLeft(stage, always(seconds), Estimate(p50, p90, NOW))


def near(estimate: Estimate | None, p50: float, p90: float) -> bool:
    """Durations are known by 8 %."""
    assert estimate
    assert estimate.at == NOW
    return abs(estimate.p50_seconds / p50 - 1) < 0.1 and abs(estimate.p90_seconds / p90 - 1) < 0.1


def test_waits_and_runs_of_all_stages_are_added() -> None:
    assert near(done_within([waits(1, 10, 5, 20), waits(2, 30, 1, 2)], NOW), 46, 62)


def test_of_steps_side_by_side_the_longest_counts() -> None:
    assert near(done_within([waits(1, 10, 5, 100), waits(1, 30, 1, 2)], NOW), 31, 110)


def test_of_a_step_that_runs_the_rest_counts() -> None:
    runs = StepLeft(1, always(100), started=NOW - 60_000)
    assert near(done_within([runs], NOW), 40, 40)


def test_nothing_is_said_while_a_wait_is_unknown() -> None:
    assert done_within([waits(1, 10, 5, 20), StepLeft(2, always(10))], NOW) is None
