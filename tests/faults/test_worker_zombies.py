"""Workers that are stopped (SIGSTOP) for longer than their lease, and continue as if nothing had happened."""

import pytest

from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.faults.fleet import HASTE, LEASE, Fleet
from tests.faults.history import History
from tests.faults.sink import Sink
from tests.faults.zombies import outlive


@pytest.fixture
def settings() -> Settings:
    return HASTE


@pytest.fixture
async def crews(fleet: Fleet) -> Fleet:
    """Two crews of one worker each: one is stopped, the other takes over."""
    await fleet.start()
    await fleet.start()
    await fleet.man()
    return fleet


async def test_a_worker_that_was_stopped_for_longer_than_its_lease_changes_nothing_any_more(
    live_store: Store, crews: Fleet, history: History, sink: Sink
) -> None:
    stopped = await outlive(live_store, crews, history, sink)
    assert stopped.crew.children() == [stopped.pid], "the same process is a worker like any other again"
    assert "lease_lost" in stopped.crew.log_text()


async def test_a_whole_crew_that_was_stopped_for_longer_than_its_lease_changes_nothing_any_more(
    live_store: Store, crews: Fleet, history: History, sink: Sink
) -> None:
    stopped = await outlive(live_store, crews, history, sink, whole_crew=True)
    assert stopped.crew.children() == [stopped.pid], "the same process is a worker like any other again"


async def test_the_report_of_a_worker_that_was_stopped_for_too_long_is_refused(
    live_store: Store, crews: Fleet, history: History, sink: Sink
) -> None:
    for _ in range(5):  # until one is fast enough to report before its supervisor gives it up
        if (await outlive(live_store, crews, history, sink, task_type="report_late", seconds=LEASE)).reported:
            return
    raise AssertionError("no late report came")
