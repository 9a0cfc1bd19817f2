"""What tests ask of the gateway, in a word each."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx

from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import raw

TASKS = "/api/v1/tasks"
WORKERS = "/internal/workers"
NO_BLOB = "sha256:" + "0" * 64
#: Lasts as long as the connection, unless it is asked to end.
ENDLESS = "/api/v1/overview/events"
NO_TASK = "01890000-0000-7000-8000-000000000000"
#: Example requests by the types of their bodies; other routes need no body.
BODIES: dict[str, dict[str, Any]] = {
    "SubmitBody": {"task_type": "echo"},
    "BatchBody": {"tasks": []},
    "JobBody": {"feature_name": "story"},
    "PollBody": {"available_capacity": 1},
    "ReleaseBody": {"task_ids": [NO_TASK]},
    "LimitChange": {"limit": 1},
    "LoginBody": {"key": "flk_nonsense"},
    "PauseBody": {"paused": True},
    "CronBody": {"schedule": "0 3 * * *"},
    "LeaseBody": {"lease_seconds": 1},
    "SayBody": {"reports": [{"task_id": NO_TASK}]},
    "ExtendBody": {"task_id": NO_TASK, "seconds": 1},
    "FrameBody": {"frame": 1},
    "TickBody": {
        "previous": "2026-01-31T12:00:00Z",
        "tick": "2026-01-31T12:01:00Z",
        "task": {"task_type": "echo"},
    },
}


def ending(path: str) -> str:
    """The same, for a request whose answer comes to an end."""
    return f"{path}?messages=1" if path == ENDLESS else path


async def submit(api: httpx.AsyncClient, task_type: str = "echo", **options: Any) -> dict[str, Any]:
    return good(await api.post(TASKS, json={"task_type": task_type, **options}), 201)


async def task(api: httpx.AsyncClient, task_id: str) -> dict[str, Any]:
    return good(await api.get(f"{TASKS}/{task_id}"))


def good(answer: httpx.Response, status: int = 200) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    return body


def refused(answer: httpx.Response, status: int, code: str, *fields: str) -> dict[str, Any]:
    """It is this problem, with these fields."""
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["code"]) == (status, code), answer.text
    assert [one["field"] for one in body.get("errors", [])] == list(fields), answer.text
    return body


class HttpWorker:
    """A worker that speaks nothing but HTTP."""

    def __init__(self, api: httpx.AsyncClient, registered: dict[str, Any]) -> None:
        self.api = api
        self.registered = registered
        self.id = registered["worker_id"]
        self.path = f"{WORKERS}/{self.id}"

    @classmethod
    async def register(cls, api: httpx.AsyncClient, **facts: Any) -> "HttpWorker":
        facts = {"capabilities": [], "capacity": 5, **facts}
        return cls(api, good(await api.post(f"{WORKERS}/register", json=facts), 201))

    async def post(self, act: str, **body: Any) -> httpx.Response:
        return await self.api.post(f"{self.path}/{act}", json=body)

    async def poll(self, room: int = 5, **options: Any) -> list[dict[str, Any]]:
        answer = good(await self.post("poll", available_capacity=room, **options))
        tasks: list[dict[str, Any]] = answer["tasks"]
        return tasks

    async def poll_one(self, **options: Any) -> dict[str, Any]:
        (task,) = await self.poll(1, **options)
        return task

    async def complete(self, task: dict[str, Any], result: Any = None) -> httpx.Response:
        return await self.post(
            "result", task_id=task["task_id"], fence=task["fence"], status="completed", result=result
        )

    async def fail(self, task: dict[str, Any], **error: Any) -> httpx.Response:
        return await self.post(
            "result", task_id=task["task_id"], fence=task["fence"], status="failed", error=error
        )

    async def heartbeat(self, **facts: Any) -> dict[str, Any]:
        return good(await self.post("heartbeat", **{"current_load": 0, "status": "active", **facts}))


async def is_waiting(store: Store, worker: HttpWorker) -> bool:
    """Whether it waits to be woken."""
    return bool(await raw(store).hexists(store.connection.keys.key("worker", worker.id), "idle"))


async def wait_in_vain(store: Store, job_id: str, seconds: int) -> None:
    """As if they had passed since the job was queued: such a long wait cannot end again in the test."""
    queued_at = (await store.jobs.get(job_id)).queued_at
    await Store(store.connection, store.settings, Clock(queued_at + seconds * 1000)).promote()


async def post(port: int, path: str, body: bytes) -> asyncio.StreamWriter:
    """The connection on which it was sent; the test does not read the answer."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    await writer.drain()
    return writer


async def hang_up(line: asyncio.StreamWriter) -> None:
    line.close()
    await line.wait_closed()


def ids(tasks: Sequence[dict[str, Any]]) -> list[str]:
    return [one["task_id"] for one in tasks]
