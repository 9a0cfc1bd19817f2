"""Answers byte by byte: in the order of the requests, each of its declared length, on one connection."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uuid_utils

from tests.api.requests import TASKS, good, submit
from tests.api.serving import Gateway

PATIENCE = 20.0
KEPT = "/api/v1/tasks?limit=1000"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Line:
    """One connection; it reads only the declared length of an answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, *requests: bytes) -> None:
        self._writer.write(b"".join(requests))
        await self._writer.drain()

    async def answer(self, *, has_body: bool = True) -> Answer:
        async with asyncio.timeout(PATIENCE):
            first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
            headers = dict(line.lower().split(": ", 1) for line in lines)
            assert len(headers) == len(lines), lines
            length = int(headers.get("content-length", "0")) if has_body else 0
            return Answer(int(first.split(" ")[1]), headers, await self._reader.readexactly(length))

    async def ended(self) -> bool:
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read() == b""


@pytest.fixture
async def line(gateway: Gateway) -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    yield Line(reader, writer)
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


def request(method: str, path: str, body: Any = None, *, version: str = "1.1", **headers: str) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        named |= {"content-type": "application/json", "content-length": str(len(content))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {"host": "127.0.0.1", **named}.items())
    return f"{method} {path} HTTP/{version}\r\n{lines}\r\n".encode() + content


async def test_requests_sent_at_once_are_answered_in_order(api: httpx.AsyncClient, line: Line) -> None:
    ids = [str(uuid_utils.uuid7()) for _ in range(30)]
    for each in ids:
        await line.send(request("POST", TASKS, {"task_type": "echo", "task_id": each}))
        await line.send(request("GET", f"/nothing/{each}"), request("HEAD", "/healthz"))
    for each in ids:
        accepted = await line.answer()
        assert (accepted.status, json.loads(accepted.body)["task_id"]) == (201, each)
        assert (await line.answer()).status == 404
        assert (await line.answer(has_body=False)).status == 200


@pytest.mark.parametrize("path", ["/healthz", "/openapi.json", "/nothing", TASKS, f"{TASKS}/x", "/metrics"])
async def test_a_head_request_is_answered_without_a_body(
    api: httpx.AsyncClient, line: Line, path: str
) -> None:
    await line.send(request("GET", path), request("HEAD", path), request("GET", "/nothing"))
    whole, head = await line.answer(), await line.answer(has_body=False)
    assert (head.status, head.headers.keys()) == (whole.status, whole.headers.keys())
    assert whole.body and int(head.headers["content-length"]) > 0
    assert (await line.answer()).status == 404


@pytest.mark.parametrize("version, headers", [("1.1", {"connection": "close"}), ("1.0", {})])
@pytest.mark.parametrize("path", ["/healthz", "/nothing"])
async def test_connection_close_is_confirmed_and_the_connection_closed(
    line: Line, version: str, headers: dict[str, str], path: str
) -> None:
    await line.send(request("GET", path, version=version, **headers))
    answer = await line.answer()
    assert answer.body and answer.headers["connection"] == "close"
    assert await line.ended()


async def test_an_answer_without_a_body_is_only_a_head(api: httpx.AsyncClient, line: Line) -> None:
    """To an event source that has received everything about an ended task."""
    task_id = (await submit(api))["task_id"]
    good(await api.delete(f"{TASKS}/{task_id}"))
    events = f"{TASKS}/{task_id}/events?after=2"
    await line.send(request("GET", events), request("GET", "/nothing"))
    answer = await line.answer(has_body=False)
    assert answer.status == 204
    assert not answer.headers.keys() & {"content-length", "transfer-encoding"}
    assert (await line.answer()).status == 404


async def test_expect_100_is_answered_with_continue(api: httpx.AsyncClient, line: Line) -> None:
    whole = request("POST", TASKS, {"task_type": "echo"}, expect="100-continue")
    head, body = whole[: whole.index(b"{")], whole[whole.index(b"{") :]
    await line.send(head)
    assert await line.answer() == Answer(100, {}, b"")
    await line.send(body)
    assert (await line.answer()).status == 201


async def test_expect_100_of_a_refused_request_is_not_answered_with_continue(line: Line) -> None:
    await line.send(
        request(
            "POST", TASKS, expect="100-continue", content_type="application/json", content_length="9999999"
        )
    )
    assert (await line.answer()).status == 413


async def test_large_answers_come_whole_however_slowly_they_are_read(
    api: httpx.AsyncClient, line: Line
) -> None:
    """More than the system takes at once: what comes behind waits until it was read."""
    for n in range(5):  # as many as a page holds
        await submit(api, parameters={"a": str(n) * 200_000})
    await line.send(*[request("GET", KEPT) for _ in range(10)], request("GET", "/nothing"))
    for _ in range(10):
        kept = json.loads((await line.answer()).body)["tasks"]
        assert sorted(task["parameters"]["a"][0] for task in kept) == list("01234")
        assert {len(task["parameters"]["a"]) for task in kept} == {200_000}
    assert (await line.answer()).status == 404


async def test_an_address_is_the_same_however_it_is_written(api: httpx.AsyncClient, line: Line) -> None:
    await line.send(
        request("POST", "/api/v1/%74asks", {"task_type": "echo"}), request("GET", TASKS + "?limit=1")
    )
    assert (await line.answer()).status == 201
    assert len(json.loads((await line.answer()).body)["tasks"]) == 1


async def test_every_answer_has_the_security_headers_for_browsers(line: Line) -> None:
    paths = ("/healthz", "/openapi.json", "/nothing", TASKS, "/api/v1/dlq/replay")
    await line.send(*(request("GET", path) for path in paths))
    for _ in paths:
        headers = (await line.answer()).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "no-store")
