"""Several processes on one port, several servers on one store: together they are one gateway."""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.asking import TASKS, HttpWorker, good, ids, stands_in_line, submit, task
from tests.api.serving import Gateway, serving
from tests.openers import is_running
from tests.servers import Server
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


async def test_several_processes_share_a_port_and_one_that_dies_is_replaced(
    where: tuple[str, str, Path],
) -> None:
    with serving(*where, "--processes", "2") as gateway:
        await wait_until(lambda: len(gateway.children()) == 2)
        async with client(gateway) as api:
            given = await submit(api)
        killed, stays = gateway.children()
        os.kill(killed, signal.SIGKILL)
        async with client(gateway) as api:  # on new connections
            await task(api, given["task_id"])
        await wait_until(lambda: len(gateway.children()) == 2 and killed not in gateway.children())
        assert stays in gateway.children()
        children = gateway.children()
    assert not any(map(is_running, children))
    assert "server_died exit_code=-9" in gateway.said()


async def test_the_processes_end_with_the_one_that_started_them(where: tuple[str, str, Path]) -> None:
    with pytest.raises(AssertionError), serving(*where, "--processes", "2") as gateway:
        await wait_until(lambda: len(gateway.children()) == 2)
        children = gateway.children()
        gateway.process.kill()
        await wait_until(lambda: not any(map(is_running, children)))


async def test_servers_that_are_killed_lose_nothing_that_was_acknowledged(
    where: tuple[str, str, Path], live_store: Store
) -> None:
    """Clients repeat with their idempotency keys what was not answered."""
    answered: Counter[str] = Counter()
    kills = 0

    async def submit_all(api: httpx.AsyncClient, number: int) -> None:
        for n in range(10):
            body = {"task_type": "echo", "idempotency_key": f"{number}-{n}"}
            while True:
                try:
                    answer = await api.post(TASKS, json=body)
                except httpx.TransportError:
                    continue
                assert answer.status_code in (200, 201), answer.text
                answered[answer.json()["task_id"]] += 1
                break

    with serving(*where, "--processes", "2") as gateway:
        await wait_until(lambda: len(gateway.children()) == 2)

        async def kill_some() -> None:
            nonlocal kills
            while kills < 4:
                await wait_until(lambda: len(gateway.children()) == 2)
                os.kill(gateway.children()[0], signal.SIGKILL)
                kills += 1
                target = min(200, sum(answered.values()) + 1)
                await wait_until(lambda target=target: sum(answered.values()) >= target)  # type: ignore[misc]

        killing = asyncio.create_task(kill_some())
        async with client(gateway) as api:
            await asyncio.gather(*(submit_all(api, number) for number in range(20)))
        await killing
        listed = await all_tasks(gateway)
    assert set(answered) == set(listed)
    assert len(listed) == 200


async def all_tasks(gateway: Gateway) -> list[str]:
    found, cursor = list[str](), ""
    async with client(gateway) as api:
        while True:
            page = good(await api.get(TASKS, params={"limit": 1000, "cursor": cursor}))
            found += ids(page["tasks"])
            if not (cursor := page["next_cursor"] or ""):
                return found


async def test_a_server_that_is_told_to_stop_answers_those_who_wait(
    where: tuple[str, str, Path], live_store: Store
) -> None:
    with serving(*where) as gateway:
        async with client(gateway) as api:
            worker = await HttpWorker.register(api)
            good(await api.put("/api/v1/limits/gpu", json={"limit": 0}))
            lease: dict[str, Any] = {"lease_seconds": 30, "wait_seconds": 30}
            waiting = [
                asyncio.create_task(api.post("/api/v1/limits/gpu/leases", json=lease)),
                asyncio.create_task(worker.post("poll", available_capacity=1, wait_seconds=30)),
            ]
            await wait_until(lambda: stands_in_line(live_store, worker))
            gateway.process.terminate()
            acquired, poll = await asyncio.gather(*waiting)
            assert good(poll)["tasks"] == []
            assert acquired.status_code == 409
