"""Wall clocks that jump by hours: nothing a worker does depends on one."""

import ast
import random
from pathlib import Path

import pytest

import fairlead.worker
from fairlead.model.task import NewTask
from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.faults.fleet import ROOT, Fleet, with_lease
from tests.faults.history import History
from tests.faults.load import Load
from tests.servers import Server
from tests.waiting import wait_until

WORKER = Path(fairlead.worker.__path__[0])
LEASE = 4.0

# Read by every Python process of the fleet before anything else: supervisor, workers, handlers' processes.
JUMPING = """
import random
import time

real, real_ns = time.time, time.time_ns
time.time = lambda: real() + random.uniform(-3600, 3600)
time.time_ns = lambda: real_ns() + random.randint(-3600, 3600) * 10**9
"""


@pytest.fixture
def settings() -> Settings:
    return with_lease(LEASE)


async def test_workers_whose_clocks_jump_by_an_hour_lose_no_lease_and_start_nothing_twice(
    live_store: Store, fleet: Fleet, history: History, server: Server, tmp_path: Path, seed: int
) -> None:
    (tmp_path / "sitecustomize.py").write_text(JUMPING)
    fleet.env["PYTHONPATH"] = f"{tmp_path}:{ROOT}"
    await fleet.start(processes=2)
    await fleet.man()
    long = NewTask(task_type="write", parameters={"sink": server.url, "seconds": 2 * LEASE})
    await live_store.submit_one(long)
    load = Load(live_store, history, random.Random(seed))
    await load.feed(lambda fed: fed >= 100)
    verdict = await load.end()
    assert verdict.faults == []
    assert verdict.losses == []
    assert verdict.ends == {"completed": len(load.needs)}
    await wait_until(lambda: long.task_id in history.ended, 40)
    assert [event.act for event in history.events if event.task == long.task_id][1:] == ["claim", "complete"]


def test_the_worker_reads_no_wall_clock() -> None:
    sources = {path.name: path.read_text() for path in WORKER.glob("*.py")}
    assert "monotonic" in sources["worker.py"]
    assert [name for name, source in sources.items() if reads_wall_clock(source)] == []


@pytest.mark.parametrize(
    "source", ["from fairlead.clock import now_ms", "from fairlead import clock\nclock.now_ms()"]
)
def test_the_check_would_notice(source: str) -> None:
    assert reads_wall_clock(source)


def reads_wall_clock(source: str) -> bool:
    """Through `clock.py`; that nobody reads one around it is a rule of the house and checked there."""
    nodes = list(ast.walk(ast.parse(source)))
    return any(isinstance(node, ast.alias | ast.Attribute) and "now_ms" in ast.dump(node) for node in nodes)
