"""Clients of live updates: over a WebSocket, and as a stream of events."""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from fairlead.model.task import Task
from fairlead.store.store import Store
from tests.api.serving import Gateway

Message = dict[str, Any]


def address(gateway: Gateway, path: str) -> str:
    return gateway.url.replace("http", "ws", 1) + path


@contextlib.asynccontextmanager
async def socket(
    gateway: Gateway, path: str, headers: Mapping[str, str] | None = None, **options: Any
) -> AsyncIterator[ClientConnection]:
    async with connect(
        address(gateway, path), additional_headers=headers, open_timeout=30, proxy=None, **options
    ) as opened:
        yield opened


async def refused_socket(
    gateway: Gateway, path: str, headers: Mapping[str, str] | None = None, **options: Any
) -> tuple[int, Message]:
    """Status and problem by which it is refused before the upgrade."""
    try:
        async with socket(gateway, path, headers, **options):
            raise AssertionError("it was accepted")
    except InvalidStatus as refusal:
        answer = refusal.response
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.body is not None
        problem: Message = json.loads(bytes(answer.body))
        assert problem["status"] == answer.status_code
        return answer.status_code, problem


async def receive(opened: ClientConnection, count: int = 1, *, estimates: bool = False) -> list[Message]:
    """The next messages. Estimates come whenever a forecast is made: without them unless they are wanted."""
    received: list[Message] = []
    while len(received) < count:
        message = json.loads(await opened.recv())
        if estimates or message["type"] != "ESTIMATE":
            received.append(message)
    return received


async def receive_one(opened: ClientConnection) -> Message:
    (message,) = await receive(opened)
    return message


async def receive_all(opened: ClientConnection) -> tuple[list[Message], int | None]:
    """To the end, and the code with which it was closed."""
    received: list[Message] = []
    with contextlib.suppress(ConnectionClosed):
        while True:
            received += await receive(opened)
    return received, opened.close_code


async def say(opened: ClientConnection, **message: Any) -> None:
    await opened.send(json.dumps(message))


@contextlib.asynccontextmanager
async def stream(
    gateway: Gateway,
    some_id: str,
    after: int | None = None,
    of: str = "tasks",
    estimates: bool = False,
    **headers: str,
) -> AsyncIterator[AsyncIterator[Message]]:
    """The events of a task, or of one of the `jobs`; each is checked to say the same thing twice."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    query = "" if after is None else f"?after={after}"
    async with httpx.AsyncClient(base_url=gateway.url, timeout=40, trust_env=False) as client:
        path = f"/api/v1/{of}/{some_id}/events{query}"
        async with client.stream("GET", path, headers=named) as answer:
            assert answer.status_code == 200, await answer.aread()
            assert answer.headers["content-type"] == "text/event-stream"
            yield _events(answer, estimates)


async def _events(answer: httpx.Response, estimates: bool) -> AsyncIterator[Message]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            message: Message = json.loads(fields["data"])
            assert (fields["id"], fields["event"]) == (str(message["seq"]), message["type"])
            fields = {}
            if estimates or message["type"] != "ESTIMATE":
                yield message


def types(messages: list[Message]) -> list[str]:
    return [message["type"] for message in messages]


def numbers(messages: list[Message]) -> list[int]:
    return [message["seq"] for message in messages]


async def claim(store: Store, worker: str = "w") -> Task:
    """The worker is registered by it."""
    await store.workers.register(worker, capacity=100)
    (task,) = (await store.claim(worker)).tasks
    return task
