"""Handlers that block the event loop or hold the interpreter's lock for three leases keep their lease."""

import pytest

from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.faults.blocked import hold_up
from tests.faults.fleet import Fleet, with_lease
from tests.faults.history import History

LEASE = 3.0


@pytest.fixture
def settings() -> Settings:
    return with_lease(LEASE)


async def test_a_handler_that_blocks_the_event_loop_for_three_leases_keeps_its_lease(
    live_store: Store, fleet: Fleet, history: History
) -> None:
    await fleet.start()
    assert await hold_up(live_store, history, "sleep_hard", 3 * LEASE) >= 3 * LEASE


async def test_a_handler_that_holds_the_interpreters_lock_for_three_leases_keeps_its_lease(
    live_store: Store, fleet: Fleet, history: History
) -> None:
    await fleet.start()
    held = await hold_up(live_store, history, "grip", 3 * LEASE)
    assert held >= 2 * LEASE, "it did not hold the lock for long: this shows nothing"


async def test_a_worker_reads_the_answers_of_its_blocked_time_before_it_judges_its_leases(
    live_store: Store, fleet: Fleet, history: History
) -> None:
    await fleet.start()
    await hold_up(live_store, history, "sleep_at_once", 1.5 * LEASE)
