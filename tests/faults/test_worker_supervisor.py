"""What a supervisor does when its workers, their children or the store die at an awkward moment."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from fairlead.model.task import NewTask
from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.faults.fleet import HASTE, LEASE, Fleet, with_lease
from tests.faults.history import History
from tests.faults.sink import Sink
from tests.servers import Server, running
from tests.waiting import wait_until

# For those in which nobody waits for a lease to end.
LONG_LEASE = pytest.mark.parametrize("settings", [with_lease(30)], ids=["long lease"], indirect=True)


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    chosen: Settings = getattr(request, "param", HASTE)
    return chosen


async def test_an_idle_worker_takes_over_from_a_crew_that_was_killed_as_a_whole(
    live_store: Store, fleet: Fleet, history: History, sink: Sink, server: Server
) -> None:
    await fleet.start()
    await fleet.start()
    await fleet.man()
    await wait_until(lambda: idle_workers(live_store, 2), because="both have looked for work and found none")
    task = NewTask(task_type="write", parameters={"sink": server.url, "seconds": 600})
    await live_store.submit_one(task)
    await wait_until(lambda: sink.read(task.task_id))
    fleet.crew_of(sink.read(task.task_id)[0].pid).signal(signal.SIGKILL)
    noticed = HASTE.lease_ms / 1000 + HASTE.lease.grace_seconds
    await wait_until(lambda: task.task_id in history.ended, noticed + 10, "somebody else has run it")


async def idle_workers(store: Store, count: int) -> bool:
    client, keys = store.connection.client, store.connection.keys
    workers: Any = await client.zrange(keys.key("workers"), 0, -1)
    marks = [await client.hget(keys.key("worker", worker.decode()), "idle") for worker in workers]
    return len([mark for mark in marks if mark]) == count


@LONG_LEASE
async def test_a_dead_worker_is_replaced_although_its_child_process_is_still_alive(
    live_store: Store, fleet: Fleet, history: History, sink: Sink, server: Server
) -> None:
    crew = await fleet.start()
    task = NewTask(task_type="beget", parameters={"sink": server.url})
    await live_store.submit_one(task)
    await wait_until(lambda: sink.read(task.task_id), 40)
    os.kill(sink.read(task.task_id)[0].pid, signal.SIGKILL)
    await wait_until(lambda: history.events[-1].act == "claim" and len(history.events) > 2, 20)
    assert [event.act for event in history.events] == ["submit", "claim", "expire", "claim"]
    await fleet.man(crew)


async def test_a_worker_that_dies_while_it_starts_does_not_end_the_others(
    live_store: Store, fleet: Fleet, tmp_path: Path
) -> None:
    (tmp_path / "late.py").write_text(
        "import os, pathlib, signal, time\n"
        "from tests.apps.faults import fl\n"
        "here = pathlib.Path.cwd()\n"
        "try:\n"
        "    (here / 'first').touch(exist_ok=False)\n"
        "except FileExistsError:\n"
        "    while not (here / 'go').exists():\n"
        "        time.sleep(0.01)\n"
        "    if not (here / 'died').exists():\n"
        "        (here / 'died').touch()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    fleet.app = "late:fl"
    crew = await fleet.start(processes=2)
    await wait_until(lambda: "worker_started" in crew.log_text(), 40)
    (tmp_path / "go").touch()
    await fleet.man(crew)
    assert "worker_draining" not in crew.log_text()


async def test_a_worker_that_takes_leases_to_start_is_waited_for(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\n"
        "from fairlead import Fairlead\n"
        "class Slow(Fairlead):\n"
        "    async def __aenter__(self):\n"
        f"        time.sleep({2 * LEASE})\n"
        "        return await super().__aenter__()\n"
        "fl = Slow()\n"
        "@fl.task\n"
        "async def work(): ...\n"
    )
    fleet.app = "slow:fl"
    crew = await fleet.start()
    await fleet.man()
    assert crew.log_text().count("worker_") == 1


async def test_a_worker_can_be_stopped_while_the_store_is_down(tmp_path: Path) -> None:
    with running("valkey") as server:
        async with Fleet(("--engine", server.url), tmp_path) as fleet:
            crew = await fleet.start()
            await fleet.man()
            server.process.kill()
            server.process.wait()
            await wait_until(lambda: "store_unavailable" in crew.log_text(), 40)
            crew.process.terminate()
            await wait_until(lambda: crew.process.returncode is not None, 40, "it has ended")


@LONG_LEASE
async def test_a_worker_that_ends_because_of_a_handler_that_cannot_be_stopped_is_replaced(
    live_store: Store, fleet: Fleet, history: History
) -> None:
    crew = await fleet.start()
    await fleet.man()
    task = NewTask(task_type="hang")
    await live_store.submit_one(task)
    await wait_until(lambda: task.task_id in history.ended, 40)
    assert [event.act for event in history.events] == ["submit", "claim", "fail"]
    after = NewTask(task_type="work", parameters={"seconds": 0.01})
    await live_store.submit_one(after)
    await wait_until(lambda: after.task_id in history.ended, 40, "there is a worker again")
    assert crew.process.returncode is None


@LONG_LEASE
async def test_a_dead_handler_process_is_noticed_although_its_fork_is_still_alive(
    live_store: Store, fleet: Fleet, history: History
) -> None:
    await fleet.start()
    task = NewTask(task_type="desert")
    await live_store.submit_one(task)
    await wait_until(lambda: task.task_id in history.ended, 40)
    done = await live_store.get(task.task_id)
    assert done.error and done.error.code == "handler_died"
    assert "ended with exit code 7" in done.error.message
