"""A task that names a user and no priority gets that of the service, which may change its mind."""

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tests.api.asking import TASKS, good, refused, submit, task

PRIORITIES: dict[str, str] = {}


class Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        user = self.path.split("/")[2]
        self.send_response(200 if user in PRIORITIES else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"priority": PRIORITIES.get(user)}).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # many ask at once


@pytest.fixture(scope="module")
def server_env() -> Iterator[Mapping[str, str]]:
    with Server(("127.0.0.1", 0), Service) as service:
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        try:
            yield {
                "PRIORITY_API_URL": f"http://127.0.0.1:{service.server_port}",
                "FAIRLEAD_PRIORITY_SERVICE__CACHE_SECONDS": "0",
                "FAIRLEAD_PRIORITY_SERVICE__TIMEOUT_SECONDS": "20",
                "FAIRLEAD_PRIORITY_SERVICE__FALLBACK": "low",
            }
        finally:
            service.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def users() -> Iterator[None]:
    PRIORITIES.update(ann="high", bob="low")
    yield
    PRIORITIES.clear()


async def test_the_service_is_asked_for_users_alone(api: httpx.AsyncClient) -> None:
    for wishes, priority in (
        ({"user_id": "ann"}, "high"),
        ({"user_id": "bob"}, "low"),
        ({"user_id": "nobody"}, "low"),
        ({"user_id": "ann", "priority": "medium"}, "medium"),
        ({}, "medium"),
    ):
        answer = await submit(api, **wishes)
        assert (answer["priority"], answer["effective_priority"]) == (priority, priority)
        assert (await task(api, answer["task_id"]))["priority"] == priority


async def test_it_is_asked_for_every_user_of_a_batch(api: httpx.AsyncClient) -> None:
    PRIORITIES.update({f"u{n}": ("high", "low")[n % 2] for n in range(120)})
    tasks = [{"task_type": "echo", "user_id": f"u{n}"} for n in range(120)]
    tasks += [{"task_type": "echo"}, {"task_type": "echo", "user_id": "ann", "priority": "low"}]
    answers = good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)["tasks"]
    kept = [(await task(api, one["task_id"]))["priority"] for one in answers]
    assert kept == ["high", "low"] * 60 + ["medium", "low"]


async def test_a_replay_is_one_although_the_service_changed_its_mind(api: httpx.AsyncClient) -> None:
    body = {"task_type": "echo", "user_id": "ann", "idempotency_key": "k"}
    first = good(await api.post(TASKS, json=body), 201)
    PRIORITIES["ann"] = "low"
    again = good(await api.post(TASKS, json=body))
    assert (again["task_id"], again["priority"]) == (first["task_id"], "high")
    refused(await api.post(TASKS, json={**body, "priority": "low"}), 409, "idempotency_conflict")
