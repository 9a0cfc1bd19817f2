"""Many workers that wait for the same rate: one of them looks when it refills, the others cost nothing."""

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead import Context, Fairlead
from fairlead.clock import monotonic
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.waiting import wait_until

WORKERS = 40
TASKS, SETTLED, MEASURED = 60, 15, 30
PERIOD_MS = 100  # between two starts
MOST_CALLS = 6  # for each task; when all of them look at each refill it is more than thirty
# a second: a heartbeat every ten, and a look every five in case a call was lost
CALLS_OF_AN_IDLE_WORKER = 0.4


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "usual.toml"
    path.write_text("")  # the defaults, including heartbeats and looks of an idle worker
    return path


async def calls(store: Store) -> int:
    """How many acts the server has carried out."""
    stats = await store.connection.client.info("commandstats")
    return sum(int(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"]) for name in ("fcall", "evalsha"))


@pytest.fixture
async def done(fl: Fairlead, live_store: Store) -> AsyncIterator[list[str]]:
    """The ids of the tasks that have run, in that order, while forty workers wait for those behind them."""
    ran: list[str] = []

    @fl.task("call", limits={"api": 1})
    async def call(ctx: Context) -> None:
        ran.append(ctx.task_id)

    fl.limit("api", rate=f"{1000 // PERIOD_MS}/s", burst=1)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(fl)
        for _ in range(WORKERS):
            await stack.enter_async_context(fl.worker(capacity=1))
        yield ran


@pytest.mark.timeout(90)
async def test_forty_workers_that_wait_for_a_rate_cost_little_and_keep_it(
    live_store: Store, done: list[str]
) -> None:
    tasks = [NewTask(task_type="call") for _ in range(TASKS)]
    await live_store.submit(*tasks)
    await wait_until(lambda: len(done) >= SETTLED, 40)
    before, first, began = await calls(live_store), len(done), monotonic()
    await wait_until(lambda: len(done) >= SETTLED + MEASURED, 40)
    spent, ran, seconds = await calls(live_store) - before, len(done) - first, monotonic() - began
    assert spent <= MOST_CALLS * ran + WORKERS * CALLS_OF_AN_IDLE_WORKER * seconds, (spent, ran, seconds)
    await wait_until(lambda: len(done) == TASKS, 40)
    assert sorted(done) == sorted(task.task_id for task in tasks)
    starts = [(await live_store.get(task.task_id)).started_at or 0 for task in tasks]
    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert min(gaps) >= PERIOD_MS - 1, "in the order they came, and no faster than the rate"
