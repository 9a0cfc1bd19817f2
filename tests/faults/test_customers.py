"""Customers that may each run one task at a time, over HTTP, with real workers: none ever runs two."""

import pytest

from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.faults.customers import CALM, CAPACITY, play, twice_at_once
from tests.faults.fleet import Fleet
from tests.faults.history import History


@pytest.fixture
def settings() -> Settings:
    return CALM


@pytest.mark.timeout(180)
async def test_no_customer_runs_two_tasks_at_once_and_no_limit_is_left(
    live_store: Store, fleet: Fleet, history: History, seed: int
) -> None:
    await fleet.start(2, CAPACITY)
    await fleet.man()
    free = await play(live_store, fleet, history, seed, customers=200, limited=False)
    limited = await play(live_store, fleet, history, seed, customers=200, limited=True)
    print(free, limited)
    assert free["customers_with_two_tasks_at_once"] > 0, "nobody would have run two: this test shows nothing"
    assert limited["customers_with_two_tasks_at_once"] == limited["limits_left"] == 0


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (["began ann 1", "ended ann 1", "began ann 2", "ended ann 2"], set()),
        (["began ann 1", "began bob 2", "ended ann 1", "ended bob 2"], set()),
        (["began ann 1", "began ann 2", "ended ann 1", "ended ann 2"], {"ann"}),
    ],
)
def test_the_record_shows_customers_that_ran_two_tasks_at_once(record: list[str], found: set[str]) -> None:
    assert twice_at_once(record) == found
