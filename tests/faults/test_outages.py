"""Outages of a whole site: all workers are gone at once, and no task is put away for it."""

import signal
from functools import partial

import pytest

from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.faults.fleet import HASTE, Fleet
from tests.faults.history import History
from tests.faults.sink import Sink
from tests.servers import Server
from tests.waiting import wait_until


@pytest.fixture
def settings() -> Settings:
    return HASTE


@pytest.mark.timeout(180)
async def test_a_task_that_runs_alone_outlives_three_outages_without_a_crash(
    live_store: Store, fleet: Fleet, history: History, sink: Sink, server: Server
) -> None:
    innocent = NewTask(task_type="linger", parameters={"sink": server.url, "runs": 4})
    await live_store.submit_one(innocent)
    for outage in range(3):
        crews = [await fleet.start(), await fleet.start()]
        await wait_until(partial(has_run, sink, innocent.task_id, outage + 1), 40, f"run {outage}")
        await fleet.man(*crews)
        for crew in crews:
            crew.signal(signal.SIGKILL)
    await fleet.start()
    await wait_until(lambda: innocent.task_id in history.ended, 40)
    task = await live_store.get(innocent.task_id)
    assert (task.status, task.crash_count, task.loss_count) == (State.COMPLETED, 0, 3)


def has_run(sink: Sink, task: str, times: int) -> bool:
    return len(sink.read(task)) == times
