"""Workers that cannot reach the store for longer than a lease stop in time and reconnect by themselves."""

from collections.abc import AsyncIterator

import pytest

from fairlead.model.task import NewTask
from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.engine_processes import is_running
from tests.faults.fleet import HASTE, Fleet, with_lease
from tests.faults.history import History
from tests.faults.partitions import Afar, crews_afar, cut_off
from tests.faults.sink import Sink
from tests.faults.zombies import works
from tests.servers import Server
from tests.waiting import wait_until

LEASE = 4.0
LONG = 2 * LEASE


@pytest.fixture
def settings() -> Settings:
    return with_lease(LEASE)


@pytest.fixture
async def crews(live_store: Store, server: Server, fleet: Fleet) -> AsyncIterator[list[Afar]]:
    async with crews_afar(live_store, server.url, fleet, 2) as found:
        yield found


@pytest.mark.timeout(180)
async def test_a_handler_is_stopped_before_its_task_is_given_to_another_worker(
    live_store: Store, crews: list[Afar], history: History, sink: Sink
) -> None:
    cut = await cut_off(live_store, crews, history, sink, seconds=LONG)
    assert cut.starts > 1
    assert cut.afar.crew.children() == [cut.pid]


@pytest.mark.timeout(180)
async def test_a_task_whose_worker_gets_no_answers_for_a_while_is_not_forgotten(
    live_store: Store, crews: list[Afar], history: History, sink: Sink
) -> None:
    # its heartbeats arrive: the lease continues, although the worker must abandon the run
    cut = await cut_off(live_store, crews, history, sink, seconds=LONG, silent=True)
    assert cut.starts > 1


@pytest.mark.timeout(180)
@pytest.mark.parametrize("task_type", ["block", "sit"])
async def test_a_worker_whose_handler_cannot_be_stopped_ends_before_the_task_is_given_to_another(
    task_type: str, live_store: Store, crews: list[Afar], history: History, sink: Sink
) -> None:
    cut = await cut_off(live_store, crews, history, sink, seconds=LONG, task_type=task_type)
    assert cut.starts > 1
    assert not is_running(cut.pid)


@pytest.mark.timeout(180)
async def test_a_process_whose_handler_cannot_be_stopped_is_killed_before_the_task_is_given_to_another(
    live_store: Store, crews: list[Afar], history: History, sink: Sink
) -> None:
    workers = [afar.crew.children() for afar in crews]
    cut = await cut_off(live_store, crews, history, sink, seconds=LONG, task_type="sit_apart")
    assert cut.starts > 1
    assert not is_running(cut.pid)
    assert [afar.crew.children() for afar in crews] == workers, "no worker had to end for it"


@pytest.mark.timeout(180)
async def test_an_idle_worker_reconnects_by_itself_after_a_long_cut(
    live_store: Store, crews: list[Afar], history: History
) -> None:
    afar, other = crews
    children = afar.crew.children()
    other.cut(silent=False)
    task = NewTask(task_type="work", parameters={"seconds": 2 * HASTE.worker.heartbeat_seconds})
    await live_store.submit_one(task)
    await wait_until(lambda: task.task_id in history.ended)
    # no heartbeat since: the supervisor still takes its lease for one that runs out
    afar.cut(silent=False)
    await wait_until(
        lambda: afar.crew.log_text().count("heartbeat_failed") > 3 * LEASE / 0.5, 40, "three leases"
    )
    afar.heal()
    await wait_until(lambda: works(live_store, afar.crew, history), 20, "it works again")
    assert afar.crew.children() == children
