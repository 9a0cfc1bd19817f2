"""A priority service that is slow: a request waits for it once, however many users it names."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from fairlead.api.priority_service import AT_ONCE
from tests.api.requests import TASKS, good, submit, task

ANSWER_SECONDS = 0.5
TIMEOUT_SECONDS = 2
LATE_SECONDS = 4  # for everything else, on a busy machine: requests for all users would take 10 s or more


class Log:
    """The requests to the service."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: list[str] = []
        self.cookies: list[str] = []
        self.now = self.most = 0


LOG = Log()


class SlowService(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        user = self.path.split("/")[2]
        with LOG.lock:
            LOG.users.append(user)
            LOG.cookies += self.headers.get_all("cookie") or []
            LOG.now += 1
            LOG.most = max(LOG.most, LOG.now)
        if user.startswith("slow"):
            time.sleep(ANSWER_SECONDS)
        with LOG.lock:
            LOG.now -= 1
        body = json.dumps({"priority": "high"}).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", f"session={user}; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


@pytest.fixture(scope="module")
def server_env() -> Iterator[Mapping[str, str]]:
    with Server(("127.0.0.1", 0), SlowService) as service:
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        try:
            yield {
                "PRIORITY_API_URL": f"http://127.0.0.1:{service.server_port}",
                "FAIRLEAD_PRIORITY_SERVICE__TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
                "FAIRLEAD_PRIORITY_SERVICE__FALLBACK": "low",
            }
        finally:
            service.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def fresh_log() -> None:
    LOG.users.clear()
    LOG.cookies.clear()
    LOG.most = 0


async def batch(api: httpx.AsyncClient, users: list[str]) -> list[dict[str, Any]]:
    tasks = [{"task_type": "echo", "user_id": user} for user in users]
    answers: list[dict[str, Any]] = good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)[
        "tasks"
    ]
    return answers


async def test_a_batch_waits_no_longer_than_one_task_and_the_rest_gets_the_fallback(
    api: httpx.AsyncClient,
) -> None:
    users = [f"slow{n}" for n in range(1000)]
    began = time.monotonic()
    answers = await batch(api, users)
    assert time.monotonic() - began < TIMEOUT_SECONDS + LATE_SECONDS
    first, last = [(await task(api, answers[n]["task_id"]))["priority"] for n in (0, -1)]
    assert (first, last) == ("high", "low")
    assert LOG.most <= AT_ONCE
    assert len(set(LOG.users)) == len(LOG.users) < 1000


async def test_each_user_of_a_batch_is_requested_once(api: httpx.AsyncClient) -> None:
    await batch(api, ["ann", "bob"] * 100)
    assert sorted(LOG.users) == ["ann", "bob"]


async def test_no_cookie_of_one_user_is_sent_for_another(api: httpx.AsyncClient) -> None:
    for user in ("carl", "dora", "emil"):
        assert (await submit(api, user_id=user))["priority"] == "high"
    assert len(LOG.users) == 3
    assert LOG.cookies == []
