"""The cause of a lost run: a kill, a machine that was too busy, or unknown."""

import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fairlead.clock import now_ms
from fairlead.model.task import NewTask
from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.engine_processes import is_running
from tests.faults.causes import LONGEST_LEASE_MS, Cause, Coroner, Kill
from tests.faults.fleet import HASTE, Fleet
from tests.faults.history import History, Judge, Loss
from tests.waiting import wait_until

KILLED = Kill(at=10_000, done=10_002, crew="crew0", target="supervisor", pid=7)
EXPIRED = Loss("t", 3, "crew0-a", began=20_000, noticed=20_000 + LONGEST_LEASE_MS, act="expire")


@pytest.fixture
def settings() -> Settings:
    return HASTE


def log(at: int, *events: str) -> str:
    return "".join(
        f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%M:%S}.000Z WARNING {one}\n" for one in events
    )


@pytest.mark.parametrize(
    ("began", "cause"),
    [(9_990, Cause.KILLED), (10_001, Cause.KILLED), (10_900, Cause.GIVEN_TO_THE_DEAD)],
    ids=["before", "while it was done", "when it was dead"],
)
def test_a_run_of_a_killed_worker(tmp_path: Path, began: int, cause: Cause) -> None:
    (tmp_path / "crew0.log").write_text(log(5_000, "worker_started worker=crew0-a capacity=4"))
    loss = EXPIRED._replace(began=began, noticed=began + LONGEST_LEASE_MS)
    assert Coroner(tmp_path, [KILLED]).cause_of(loss) is cause


def test_only_the_one_that_was_killed_lost_its_runs_by_the_kill(tmp_path: Path) -> None:
    lines = [
        *(f"worker_started worker=crew0-{one} capacity=4" for one in "ab"),
        "worker_died worker=crew0-b pid=7",
    ]
    (tmp_path / "crew0.log").write_text(log(5_000, *lines))
    coroner = Coroner(tmp_path, [Kill(10_000, 10_002, "crew0", "worker", 7)])
    lost = EXPIRED._replace(began=9_990, noticed=9_990 + LONGEST_LEASE_MS)
    assert coroner.cause_of(lost._replace(worker="crew0-b")) is Cause.KILLED
    assert coroner.cause_of(lost) is Cause.UNEXPLAINED


TIMEOUT = "store_unavailable worker=crew0-a The store did not answer"


@pytest.mark.parametrize(
    ("at", "event", "early_by", "cause"),
    [
        (24_000, "lease_lost worker=crew0-a task=t fence=3", 0, Cause.TOO_LATE),
        (24_000, "came_late worker=crew0-a task=t fence=3", 0, Cause.TOO_LATE),
        (24_000, "report_refused task=t fence=3 fenced", 0, Cause.TOO_LATE),
        (24_000, "report_refused task=t fence=30 fenced", 0, Cause.UNEXPLAINED),
        (24_000, "report_refused task=t fence=3 fenced", 1, Cause.UNEXPLAINED),
        (22_000, TIMEOUT, 0, Cause.UNANSWERED),
        (22_000, "heartbeat_failed worker=crew0-a The store did not answer", 0, Cause.UNANSWERED),
        (40_000, TIMEOUT, 0, Cause.UNEXPLAINED),
        (22_000, "store_unavailable worker=crew0-b The store did not answer", 0, Cause.UNEXPLAINED),
    ],
)
def test_a_run_of_a_worker_that_lived(
    tmp_path: Path, at: int, event: str, early_by: int, cause: Cause
) -> None:
    (tmp_path / "crew0.log").write_text(log(at, event))
    loss = EXPIRED._replace(noticed=EXPIRED.noticed - early_by)
    assert Coroner(tmp_path, []).cause_of(loss) is cause


@pytest.mark.parametrize(("act", "cause"), [("release", Cause.GIVEN_BACK), ("expire", Cause.UNEXPLAINED)])
def test_a_run_that_had_not_begun_when_its_worker_fell_silent(tmp_path: Path, act: str, cause: Cause) -> None:
    given_back = 'given_back worker=crew0-a task=t fence=3 problem="not begun"'
    (tmp_path / "crew0.log").write_text(log(22_000, given_back))
    assert Coroner(tmp_path, []).cause_of(EXPIRED._replace(act=act)) is cause


@pytest.mark.timeout(120)
async def test_a_task_handed_to_a_dead_worker_is_free_when_its_lease_has_ended(
    live_store: Store, fleet: Fleet, history: History
) -> None:
    """By design: the store cannot know yet that the machine is gone."""
    crew = await fleet.start(1)
    await fleet.man()
    connection = live_store.connection
    await wait_until(lambda: connection.client.exists(connection.keys.key("idle")), 40, "its worker waits")
    (worker,) = crew.children()
    crew.signal(signal.SIGKILL)
    await wait_until(lambda: not is_running(worker))
    at = now_ms()
    await wait_until(lambda: now_ms() > at)
    task = NewTask(task_type="work", parameters={"seconds": 0.01})
    await live_store.submit_one(task)
    await fleet.start(1)
    await wait_until(lambda: task.task_id in history.ended, 40, "the next crew has run it")
    verdict = Judge({}, {task.task_id: {}}).judge(history.events)
    (loss,) = verdict.losses
    kill = Kill(at, at, crew.name, "supervisor", crew.process.pid)
    assert Coroner(fleet.folder, [kill]).cause_of(loss) is Cause.GIVEN_TO_THE_DEAD
    assert (verdict.faults, verdict.ends) == ([], {"completed": 1})
