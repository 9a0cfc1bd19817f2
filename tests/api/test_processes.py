"""Several processes on one port, several servers on one store: together they are one gateway."""

import asyncio
import contextlib
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.api.processes import keep_processes
from fairlead.model.task import NewTask
from fairlead.store.scripts import function_of
from fairlead.store.store import Store
from fairlead.worker.signals import StopRequest
from tests.api.requests import TASKS, HttpWorker, good, is_waiting, submit, task
from tests.api.serving import Gateway, serving
from tests.engine_processes import is_running, kill
from tests.servers import Server
from tests.store.namespace import raw
from tests.waiting import wait_until


@pytest.fixture
def where(live_store: Store, server: Server, tmp_path: Path) -> tuple[str, str, Path]:
    return server.url, live_store.connection.keys.namespace, tmp_path


def client(gateway: Gateway) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=gateway.url, timeout=40)


async def test_two_servers_on_one_store_are_one_gateway(where: tuple[str, str, Path]) -> None:
    with serving(*where) as one, serving(*where) as two:
        async with client(one) as left, client(two) as right:
            worker = await HttpWorker.register(left)
            poll = asyncio.create_task(worker.poll(wait_seconds=30))
            given = await submit(right, idempotency_key="k")
            (polled,) = await poll
            again = await right.post(TASKS, json={"task_type": "echo", "idempotency_key": "k"})
            assert good(again)["task_id"] == given["task_id"] == polled["task_id"]
            worker.api = right
            good(await worker.complete(polled, 1))
            assert (await task(left, given["task_id"]))["result"] == 1


async def test_a_cancel_at_one_server_reaches_the_worker_at_the_other(
    where: tuple[str, str, Path],
) -> None:
    with serving(*where) as one, serving(*where) as two:
        async with client(one) as left, client(two) as right:
            worker = await HttpWorker.register(right)
            given = await submit(left)
            polled = await worker.poll_one()
            assert (await worker.heartbeat())["cancel"] == []
            good(await left.delete(f"{TASKS}/{given['task_id']}"))
            assert (await worker.heartbeat())["cancel"] == [given["task_id"]]
            assert (await worker.complete(polled)).status_code == 409
            assert (await task(right, given["task_id"]))["status"] == "cancelled"


async def test_200_clients_of_two_servers_that_race_with_one_key_make_one_task(
    where: tuple[str, str, Path], live_store: Store
) -> None:
    body = {"task_type": "echo", "idempotency_key": "race"}
    with serving(*where, "--processes", "2") as one, serving(*where) as two:
        async with client(one) as left, client(two) as right:
            answers = await asyncio.gather(*((left, right)[n % 2].post(TASKS, json=body) for n in range(200)))
    assert sorted(answer.status_code for answer in answers) == [200] * 199 + [201]
    assert len({answer.json()["task_id"] for answer in answers}) == 1
    assert len((await live_store.list_tasks()).tasks) == 1


async def test_when_the_server_that_does_the_upkeep_is_killed_another_one_does_it(
    where: tuple[str, str, Path], live_store: Store
) -> None:
    async def caretaker() -> int:
        """Its process id; 0 if there is none."""
        holder = await raw(live_store).get(live_store.connection.keys.key("caretaker"))
        return int(holder.split(b"-")[0]) if holder else 0

    with contextlib.ExitStack() as stack:
        two = [stack.enter_context(serving(*where)) for _ in range(2)]
        await wait_until(caretaker)
        elected = await caretaker()
        (killed,) = [gateway for gateway in two if gateway.process.pid == elected]
        (other,) = [gateway for gateway in two if gateway is not killed]
        delayed = await live_store.submit_one(NewTask(task_type="echo", delay_seconds=0.5))
        killed.process.kill()

        async def other_does_it() -> bool:
            return await caretaker() == other.process.pid

        await wait_until(other_does_it)

        async def is_queued() -> bool:  # nobody claims: the caretaker notices it
            return (await live_store.get(delayed.task_id)).status == "queued"

        await wait_until(is_queued)
        await wait_until(lambda: "caretaker_elected" in other.log_text())
        with pytest.raises(AssertionError):  # of the one that did not end in order
            stack.close()


async def test_several_processes_share_a_port_and_one_that_dies_is_replaced(
    where: tuple[str, str, Path],
) -> None:
    with serving(*where, "--processes", "2") as gateway:
        await wait_until(lambda: len(gateway.children()) == 2)
        async with client(gateway) as api:
            given = await submit(api)
        killed, stays = gateway.children()
        await kill(killed)
        async with client(gateway) as api:  # on new connections
            await task(api, given["task_id"])
        await wait_until(lambda: len(gateway.children()) == 2 and killed not in gateway.children())
        assert stays in gateway.children()
        children = gateway.children()
    assert not any(map(is_running, children))
    assert "server_died exit_code=-9" in gateway.log_text()


async def test_the_processes_end_with_the_one_that_started_them(where: tuple[str, str, Path]) -> None:
    with pytest.raises(AssertionError), serving(*where, "--processes", "2") as gateway:
        await wait_until(lambda: len(gateway.children()) == 2)
        children = gateway.children()
        gateway.process.kill()
        await wait_until(lambda: not any(map(is_running, children)))


async def test_a_server_that_stops_answers_waiting_requests(
    where: tuple[str, str, Path], live_store: Store
) -> None:
    with serving(*where) as gateway:
        async with client(gateway) as api:
            worker = await HttpWorker.register(api)
            good(await api.put("/api/v1/limits/gpu", json={"limit": 0}))
            lease: dict[str, Any] = {"lease_seconds": 30, "wait_seconds": 30}
            async with raw(live_store).monitor() as monitor:
                waiting = [
                    asyncio.create_task(api.post("/api/v1/limits/gpu/leases", json=lease)),
                    asyncio.create_task(worker.post("poll", available_capacity=1, wait_seconds=30)),
                ]
                while function_of("acquire") not in (await monitor.next_command())["command"]:
                    pass
            await wait_until(lambda: is_waiting(live_store, worker))
            gateway.process.terminate()
            acquired, poll = await asyncio.gather(*waiting)
            assert good(poll)["tasks"] == []
            assert acquired.status_code == 409
        await gateway.ended()


NOTES_SIGNALS = """
import asyncio, pathlib, sys
from fairlead.worker.signals import StopRequest

async def main():
    stop = StopRequest(600).on_signals()
    note = pathlib.Path(sys.argv[1])
    note.write_text("up")
    await stop.requested.wait()
    note.write_text("stopping")
    await stop.hurried.wait()
    note.write_text("hurried")

asyncio.run(main())
"""


async def test_a_process_is_hurried_however_soon_after_it_was_stopped(tmp_path: Path) -> None:
    note, stop = tmp_path / "note", StopRequest(600)
    with socket.socket() as opened:
        command = [sys.executable, "-c", NOTES_SIGNALS, str(note)]
        keeping = asyncio.create_task(keep_processes(command, opened, 1, stop))
        await wait_until(lambda: note.exists() and note.read_text() == "up")
        stop.requested.set()
        await wait_until(lambda: note.read_text() == "stopping")
        stop.hurried.set()
        await keeping
    assert note.read_text() == "hurried"
