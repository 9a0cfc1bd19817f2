"""Tasks that kill whatever runs them are dead letters after three crashes and harm no other task."""

from functools import partial

import pytest

from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.faults.fleet import Fleet, with_lease
from tests.faults.history import History
from tests.faults.poison import swallow
from tests.faults.sink import Sink
from tests.servers import Server
from tests.waiting import wait_until


@pytest.fixture
def settings() -> Settings:
    # a worker that dies here has a supervisor, which does not wait for the end of the lease
    return with_lease(30)


@pytest.mark.timeout(180)
async def test_poison_pills_are_quarantined_after_three_crashes_and_all_others_complete(
    live_store: Store, fleet: Fleet, history: History, seed: int
) -> None:
    await fleet.start(processes=2, capacity=5)
    print(await swallow(live_store, history, seed, good=40, pills=4))


@pytest.mark.timeout(180)
async def test_a_task_that_runs_apart_is_not_charged_for_what_kills_its_worker(
    live_store: Store, fleet: Fleet, history: History, sink: Sink, server: Server
) -> None:
    await fleet.start(capacity=5)
    good = NewTask(task_type="linger", parameters={"sink": server.url, "runs": 4})
    await live_store.submit_one(good)
    for pills in range(3):
        await wait_until(partial(has_run, sink, good.task_id, pills + 1), 40, f"it runs, {pills} pills later")
        await live_store.submit_one(NewTask(task_type="die"))
    await wait_until(lambda: good.task_id in history.ended, 40)
    task = await live_store.get(good.task_id)
    assert (task.status, task.crash_count, task.loss_count, task.result) == (State.COMPLETED, 0, 1, 4)


def has_run(sink: Sink, task: str, times: int) -> bool:
    return len(sink.read(task)) == times
