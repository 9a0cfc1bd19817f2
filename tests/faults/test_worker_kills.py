"""kill -9 of workers and supervisors under load: nothing is lost or ended twice, no limit is exceeded."""

import pytest

from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.faults.fleet import HASTE, Fleet
from tests.faults.history import History
from tests.faults.kills import play


@pytest.fixture
def settings() -> Settings:
    return HASTE


@pytest.mark.timeout(180)
async def test_six_kills_lose_no_task_exceed_no_limit_and_end_nothing_twice(
    live_store: Store, fleet: Fleet, history: History, seed: int
) -> None:
    verdict, figures = await play(live_store, fleet, history, seed, tasks=250, kills=6, crews=3, processes=2)
    print(figures)
    assert verdict.faults == []
    assert set(verdict.ends) <= {"completed", "dead_letter"}
    assert figures["lost_runs_by_cause"]["unexplained"] == 0
    assert verdict.losses, "no kill hit a running task: this test shows nothing"
    await fleet.man()  # a new replacement does not handle signals yet
    assert [await crew.end() for crew in fleet.crews] == [0, 0, 0]
