"""Attacks by clients that have a key: of a tenant that is not the others'."""

import json
from typing import Any

from tests.faults.hostile.lines import UPGRADE, Line, attack

TEXT, CLOSE, PING, CONTINUATION = 0x1, 0x8, 0x9, 0x0
FINAL = 0x80
TASKS = "/api/v1/tasks"
JSON = "Content-Type: application/json"
TASK = {"task_type": "hostile", "parameters": {"filling": "x" * 14_000}}
BATCH = json.dumps({"tasks": [TASK] * 1000}).encode()  # 14 MB, where 16 MiB are accepted


def frame(opcode: int, payload: bytes = b"", *, final: bool = True) -> bytes:
    """As a client sends it, under a mask of zeros."""
    assert len(payload) < 126
    return bytes(((FINAL if final else 0) | opcode, 0x80 | len(payload))) + bytes(4) + payload


async def ask(line: Line, path: str, body: dict[str, Any]) -> dict[str, Any]:
    sent = json.dumps(body).encode()
    await line.send(line.target.head("POST", path, JSON, f"Content-Length: {len(sent)}") + sent)
    answer: dict[str, Any] = json.loads(await line.answer())
    return answer


async def upgrade(line: Line, path: str = "/ws/tasks") -> None:
    await line.send(line.target.head("GET", path, *UPGRADE))
    head = await line.reader.readuntil(b"\r\n\r\n")
    if b" 101 " not in head:
        raise ConnectionRefusedError(head)


@attack(16, by="client")
async def empty_fragments(line: Line) -> None:
    await upgrade(line)
    await line.send(frame(TEXT, b"{", final=False))
    while True:
        await line.send(frame(CONTINUATION, final=False) * 10_000)


@attack(16, by="client")
async def pings(line: Line) -> None:
    """And no answer is read."""
    await upgrade(line)
    while True:
        await line.send(frame(PING, b"x" * 100) * 1000)


@attack(16, by="client")
async def invalid_messages(line: Line) -> None:
    """Each is answered with a problem, which is not read."""
    await upgrade(line)
    while True:
        await line.send(frame(TEXT, b"{}") * 1000)


@attack(50, by="client")
async def malformed_frames(line: Line) -> None:
    await upgrade(line)
    await line.send(b"\xff" * 100)
    await line.until_cut()


@attack(6, by="client")
async def batches(line: Line) -> None:
    head = line.target.head("POST", f"{TASKS}/batch", JSON, f"Content-Length: {len(BATCH)}")
    while True:
        await line.send(head + BATCH)
        await line.answer()


@attack(50, by="client")
async def unfinished_batches(line: Line) -> None:
    """All but the last byte."""
    head = line.target.head("POST", f"{TASKS}/batch", JSON, f"Content-Length: {len(BATCH)}")
    await line.send(head + BATCH[:-1])
    await line.until_cut()


@attack(6, by="client")
async def lists(line: Line) -> None:
    while True:
        await line.send(line.target.head("GET", f"{TASKS}?limit=1000"))
        await line.answer()


@attack(50, by="client")
async def lists_unread(line: Line) -> None:
    while True:
        await line.send(line.target.head("GET", f"{TASKS}?limit=1000"))


@attack(2000, by="worker")
async def long_polls(line: Line) -> None:
    """Each for tasks of a type that there never are."""
    registered = await ask(line, "/internal/workers/register", {"task_types": ["none"], "capacity": 1})
    path = f"/internal/workers/{registered['worker_id']}/poll"
    while True:
        await ask(line, path, {"available_capacity": 1, "wait_seconds": 30})


@attack(500, by="worker")
async def waits_for_a_limit(line: Line) -> None:
    """For units that nobody gives back."""
    while True:
        await ask(line, "/api/v1/limits/scarce/leases", {"lease_seconds": 3600, "wait_seconds": 30})


@attack(2000, by="client")
async def sockets(line: Line) -> None:
    await upgrade(line)
    await line.until_cut()


@attack(2000, by="client")
async def broken_sockets(line: Line) -> None:
    await upgrade(line)


@attack(2000, by="client")
async def event_streams(line: Line) -> None:
    """Of one task each, which is queued and stays so."""
    task = await ask(line, TASKS, {"task_type": "hostile", "user_id": "flood"})
    await line.send(line.target.head("GET", f"{TASKS}/{task.get('task_id')}/events"))
    await line.until_cut()
