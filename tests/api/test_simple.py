"""The simplest endpoint, `GET /task`, with three slots of which one is reserved for `high`; and the pages."""

from collections.abc import Mapping

import httpx
import pytest

from fairlead import __version__
from tests.api.contract import PAGES
from tests.api.requests import HttpWorker, good, submit


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"MAX_CONCURRENT_TASKS": "3", "HIGH_PRIORITY_RESERVED": "1"}


async def schedule(api: httpx.AsyncClient, priority: str) -> str:
    answer = good(await api.get("/task", params={"priority": priority}))
    assert (answer["status"], answer["priority"]) == ("queued", priority)
    task_id: str = answer["task_id"]
    return task_id


#: The tasks that are scheduled, one after the other, and how many of each run then.
BEHAVIOUR = {
    "all low": (["low"] * 5, {"low": 2}),
    "all high": (["high"] * 5, {"high": 3}),
    "low, then high": (["low"] * 4 + ["high"] * 1, {"low": 2, "high": 1}),
    "high bursts": (["high"] * 3 + ["low"] * 2, {"high": 3}),
    "two high, then low": (["high"] * 2 + ["low"] * 2, {"high": 2, "low": 1}),
}


@pytest.mark.parametrize("case", BEHAVIOUR)
async def test_low_never_takes_the_slot_that_is_kept_for_high(api: httpx.AsyncClient, case: str) -> None:
    scheduled, expected = BEHAVIOUR[case]
    registered = good(await api.post("/internal/workers/register", json={}), 201)
    worker = HttpWorker(api, registered)
    running: dict[str, int] = {}
    for priority in scheduled:
        await schedule(api, priority)
        for polled in await worker.poll(3):
            running[polled["priority"]] = running.get(polled["priority"], 0) + 1
    assert running == expected


async def test_low_that_waits_gets_the_slot_of_low_that_ends(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api, capacity=3)
    for _ in range(3):
        await schedule(api, "low")
    first, _ = await worker.poll(3)
    assert await worker.poll(3) == []
    good(await worker.complete(first))
    assert len(await worker.poll(3)) == 1


async def test_a_task_is_followed_by_its_id(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api, task_types=["task"])
    task_id = await schedule(api, "high")
    assert good(await api.get(f"/task/{task_id}"))["status"] == "queued"
    polled = await worker.poll_one()
    assert good(await api.get(f"/task/{task_id}"))["status"] == "executing"
    good(await worker.complete(polled, "done"))
    assert good(await api.get(f"/task/{task_id}")) == {
        "task_id": task_id,
        "status": "completed",
        "priority": "high",
        "result": "done",
    }


async def test_without_a_word_it_is_low(api: httpx.AsyncClient) -> None:
    assert good(await api.get("/task"))["priority"] == "low"


# Whether all is well


async def test_health_and_readiness(api: httpx.AsyncClient) -> None:
    assert good(await api.get("/healthz")) == {"status": "ok", "version": __version__}
    assert good(await api.get("/readyz")) == {"status": "ready"}


async def test_the_pages_list_every_route(api: httpx.AsyncClient) -> None:
    page = good(await api.get("/openapi.json"))
    assert page["paths"] == PAGES
    docs = await api.get("/docs")
    assert docs.headers["content-type"] == "text/html; charset=utf-8"
    assert all(f"<code>{path}</code>" in docs.text for path in PAGES)


async def test_every_answer_has_the_security_headers_for_browsers(api: httpx.AsyncClient) -> None:
    await submit(api)
    for path in ("/api/v1/tasks", "/nothing", "/healthz", "/docs", "/openapi.json", "/api/v1/tasks/x"):
        headers = (await api.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers
