"""Polls whose clients disconnect at any instant: tasks that a client has not received return at once."""

import asyncio
import contextlib
import json
import random
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest

from fairlead.model.states import State
from fairlead.store.store import Store
from tests.api.requests import HttpWorker, good, ids, is_waiting
from tests.api.serving import Gateway
from tests.store.namespace import new, raw
from tests.waiting import wait_until

LINES, CUTS = 8, 30
A_MOMENT = 10.0  # seconds; a lease lasts for 30


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__WRITE_SECONDS": "0.5"}


class Poll:
    """On its own socket. Whatever has arrived when it is cut was received, and nothing after that."""

    def __init__(self, port: int, worker: HttpWorker, *headers: str, times: int = 1, **options: Any) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        body = json.dumps({"available_capacity": 1, **options})
        head = [f"POST {worker.path}/poll HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
        head += [f"Content-Length: {len(body)}", *headers, "", ""]
        self._socket.sendall(("\r\n".join(head) + body).encode() * times)

    def cut(self) -> list[dict[str, Any]]:
        """The tasks it received."""
        with contextlib.suppress(OSError):  # the server may have closed it
            self._socket.shutdown(socket.SHUT_RDWR)
        received = b""
        with contextlib.suppress(ConnectionResetError):  # an answer came since
            while piece := self._socket.recv(1 << 16):
                received += piece
        self._socket.close()
        return _tasks(received)

    async def read(self) -> list[dict[str, Any]]:
        """All of an answer that is shorter than a packet."""
        return _tasks(await asyncio.to_thread(self._socket.recv, 1 << 16))

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()


def _tasks(received: bytes) -> list[dict[str, Any]]:
    body = received.partition(b"\r\n\r\n")[2]
    return list(json.loads(body)["tasks"]) if body else []


async def waits(store: Store) -> int:
    """How many wait for a word from the store, on the whole server."""
    return int((await raw(store).info("clients"))["blocked_clients"])


async def is_queued(store: Store, *task_ids: str) -> bool:
    found = [await store.get(task_id) for task_id in task_ids]
    return all(task.status is State.QUEUED for task in found)


class Cutter:
    """Submits a task for its own worker, and cuts its poll around the instant when it is delivered."""

    def __init__(self, api: httpx.AsyncClient, store: Store, port: int, dice: random.Random) -> None:
        self._api = api
        self._store = store
        self._port = port
        self._dice = dice
        self._usual = 0.002  # seconds until delivery; as long as it takes lately

    async def cut(self) -> tuple[str, bool]:
        """Whether the task was received."""
        poll, task_id = await self._poll()
        seconds = self._dice.uniform(0, 2 * self._usual)
        await asyncio.sleep(seconds)
        was_received = ids(poll.cut()) == [task_id]
        self._usual *= 0.9 if was_received else 1.1
        return task_id, was_received

    async def _poll(self) -> tuple[Poll, str]:
        task_type = f"t{self._dice.randrange(1 << 60)}"
        worker = await HttpWorker.register(self._api, task_types=[task_type])
        headers = ["Connection: close"] * (self._dice.random() < 0.3)
        if self._dice.random() < 0.2:
            task_id = (await self._store.submit_one(new(task_type))).task_id
            return Poll(self._port, worker, *headers), task_id
        poll = Poll(self._port, worker, *headers, wait_seconds=30)
        await wait_until(lambda: is_waiting(self._store, worker))
        return poll, (await self._store.submit_one(new(task_type))).task_id


async def test_no_task_stays_with_a_disconnected_client(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    received = dict[str, bool]()

    async def cut_many(dice: random.Random) -> None:
        cutter = Cutter(api, store, gateway.port, dice)
        received.update([await cutter.cut() for _ in range(CUTS)])

    await asyncio.gather(*(cut_many(random.Random(seed + line)) for line in range(LINES)))
    lost = [task_id for task_id, was_received in received.items() if not was_received]
    await wait_until(lambda: is_queued(store, *lost), A_MOMENT, "all that was not received is queued")
    claimed = [task for task in [await store.get(task_id) for task_id in lost] if task.fence]
    print("received", len(received) - len(lost), "lost", len(lost), "of which claimed", len(claimed))
    assert claimed, "none was cut between its claim and its delivery"
    assert all(task.crash_count == task.retry_count == 0 for task in claimed)


@pytest.mark.parametrize("headers", [[], ["Connection: close"]], ids=["keep-alive", "close"])
@pytest.mark.parametrize("end", [Poll.cut, Poll.reset], ids=["close", "reset"])
async def test_a_received_task_is_kept_however_the_connection_ends(
    api: httpx.AsyncClient, store: Store, gateway: Gateway, headers: list[str], end: Callable[[Poll], Any]
) -> None:
    worker = await HttpWorker.register(api)
    await store.submit_one(new())
    poll = Poll(gateway.port, worker, *headers)
    (task,) = await poll.read()
    end(poll)
    for _ in range(3):  # each is answered after the server has seen the end of the connection
        assert not (await worker.heartbeat())["lost"]
    good(await worker.complete(task))


async def test_tasks_that_a_client_does_not_read_return_when_it_is_disconnected(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    worker = await HttpWorker.register(api, capacity=100)
    large = [new(parameters={"text": "x" * 200_000}) for _ in range(60)]  # more than the kernel keeps
    await store.submit(*large)
    # each answer has about a megabyte of them: the kernel keeps some answers, the next is not written
    poll = Poll(gateway.port, worker, available_capacity=60, times=12)

    async def some_are_back() -> bool:
        found = [await store.get(task.task_id) for task in large]
        return any(task.fence and task.status is State.QUEUED for task in found)

    await wait_until(some_are_back, A_MOMENT)
    poll.reset()


async def test_a_poll_keeps_its_place_in_the_queue_when_another_of_its_worker_is_cut(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    """As when a worker lost its connection and polls again before the server has noticed."""
    worker = await HttpWorker.register(api)
    before = await waits(store)
    cut = Poll(gateway.port, worker, wait_seconds=30)
    polling = asyncio.create_task(worker.poll(1, wait_seconds=30))

    async def wait(polls: int) -> bool:
        return await waits(store) == before + polls

    await wait_until(lambda: wait(2), because="both wait")
    cut.cut()
    await wait_until(lambda: wait(1), because="one waits")
    task_id = (await store.submit_one(new())).task_id
    async with asyncio.timeout(A_MOMENT):
        assert ids(await polling) == [task_id]


async def test_two_polls_of_a_worker_share_the_work(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    """As of a worker with two threads: the claim of one must not leave the other waiting in no line."""
    worker = await HttpWorker.register(api)
    before = await waits(store)
    polls = [asyncio.create_task(worker.poll(1, wait_seconds=30)) for _ in range(2)]

    async def both_wait() -> bool:
        return await waits(store) == before + 2

    await wait_until(both_wait)
    tasks = [new(), new()]
    async with asyncio.timeout(A_MOMENT):
        await store.submit_one(tasks[0])
        await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
        await store.submit_one(tasks[1])
        got = await asyncio.gather(*polls)
    assert {one["task_id"] for (one,) in got} == {task.task_id for task in tasks}
