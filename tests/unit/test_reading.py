"""What is read from a forecast that time has passed by."""

from fairlead.estimates.curve import GONE_AT
from fairlead.estimates.reading import Newcomer, estimate_of

HEAD = {"at": 0, "run": 0, "lengths": [], "corrections": [[[1_000, 1_000]]] * 3}
CURVE = [2, 500, 1_000, 500, *[200] * len(GONE_AT), 10, 1, 0, 2_000, 4_000, 90, 9, 2, 3_000, 6_000]


def test_a_task_that_should_have_started_by_now_does_not_wait_less_than_nothing() -> None:
    between = Newcomer(at=60_000, priority=1, tag=50, seq=5, before=2, rank=0, idle=1)
    given = estimate_of(between, {"head": HEAD, "1n:*": CURVE})
    assert given
    assert (given.p50, given.raw_p50) == (0, 0)
    assert given.p90 == given.raw_p90 == 50
