"""Each change of a task is one event of one log, and each request one line."""

import re
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from tests.api.requests import HttpWorker, good, submit
from tests.api.serving import Gateway
from tests.logs import json_records
from tests.pages import Page, all_blocks
from tests.waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PAYLOAD, MESSAGE, QUERY = "canary-of-the-payload", "canary-of-the-message", "canary-of-the-query"


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    log = {"TRANSITIONS": "true", "ACCESS": "true", "FORMAT": "json"}
    return {"FAIRLEAD_RETRY__BASE_SECONDS": "0.01"} | {
        f"FAIRLEAD_LOG__{name}": value for name, value in log.items()
    }


async def test_every_change_of_a_task_is_logged_once_with_its_trace(
    api: httpx.AsyncClient, gateway: Gateway
) -> None:
    worker = await HttpWorker.register(api)
    api.headers["traceparent"] = f"00-{TRACE}-b7ad6b7169203331-01"
    task_id = (await submit(api, parameters={"text": PAYLOAD}, max_retries=1))["task_id"]
    first = await worker.poll_one()
    good(await worker.fail(first, message=MESSAGE, code="no_paint", retriable=True))
    second = await worker.poll_one(wait_seconds=20)
    good(await worker.complete(second, PAYLOAD))
    good(await api.get("/api/v1/tasks", params={"user_id": QUERY}))

    def of_task() -> list[dict[str, object]]:
        lines = json_records(gateway.log_text())
        return [line for line in lines if line.get("task") == task_id and line["event"] == "transition"]

    await wait_until(lambda: of_task()[-1:] and of_task()[-1]["after"] == "completed")
    assert [(line["act"], line.get("before"), line["after"]) for line in of_task()] == [
        ("submit", None, "queued"),
        ("claim", "queued", "executing"),
        ("fail", "executing", "delayed"),
        ("promote", "delayed", "queued"),
        ("claim", "queued", "executing"),
        ("complete", "executing", "completed"),
    ]
    assert {line["trace"] for line in of_task()} == {TRACE}
    assert [line.get("code") for line in of_task()][2] == "no_paint"
    assert {line["worker"] for line in of_task()[1:]} == {worker.id}
    (shown,) = [block.text for block in all_blocks(Page("docs/monitoring.md").text) if block.kind == "text"]
    fields = [word.partition("=")[0] for word in shown.split()[3:]]
    assert fields == [name for name in of_task()[1] if name not in ("time", "level", "logger", "event")]
    text = gateway.log_text()
    assert [word for word in (PAYLOAD, MESSAGE, QUERY) if word in text] == []
    (example,) = re.findall(r" INFO transition (.*)", PAGE.read_text())
    assert set(re.findall(r"(\w+)=", example)) == of_task()[1].keys() - {"time", "level", "logger", "event"}


async def test_every_request_is_logged_without_its_query(api: httpx.AsyncClient, gateway: Gateway) -> None:
    path = "/api/v1/tasks/01890000-0000-7000-8000-0000000000aa"
    assert (await api.get(path)).status_code == 404
    assert (await api.get("/api/v1/tasks", params={"user_id": QUERY})).status_code == 200

    def requests() -> list[dict[str, object]]:
        return [line for line in json_records(gateway.log_text()) if line["event"] == "request"]

    await wait_until(lambda: any(line["path"] == "/api/v1/tasks" for line in requests()))
    (one,) = [line for line in requests() if line["path"] == path]
    assert (one["method"], one["status"], one["client"]) == ("GET", 404, "127.0.0.1")
    assert QUERY not in gateway.log_text()
