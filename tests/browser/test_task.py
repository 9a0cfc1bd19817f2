"""The page of a task: its life, what was said about it, its output, and what may be done with it."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page

from tests.browser.hostile import NAME_LIKE, TEXTS, assert_harmless
from tests.browser.person import (
    WorkerOverHttp,
    accessibility_problems,
    expecting,
    shoot,
    sideways_scroll,
)

TRACEBACK = """Traceback (most recent call last):
  File "/venv/lib/python3.12/site-packages/torch/nn.py", line 7, in forward
    return self.run(x)
  File "/srv/draw.py", line 48, in draw
    image = pipe(prompt)
MemoryError: 3 GiB wanted"""


def submit(api: httpx.Client, **options: Any) -> str:
    answer = api.post("/api/v1/tasks", json={"task_type": "draw", "user_id": "emil", **options})
    assert answer.status_code == 201, answer.text
    task_id: str = answer.json()["task_id"]
    return task_id


@pytest.fixture
def failed(api: httpx.Client, worker: WorkerOverHttp) -> str:
    task_id = submit(api)
    (task,) = [one for one in worker.take() if one["task_id"] == task_id]
    worker.fail(task, code="out_of_memory", message="3 GiB wanted", traceback=TRACEBACK)
    return task_id


def test_its_life_is_live(page: Page, api: httpx.Client, worker: WorkerOverHttp) -> None:
    task_id = submit(api, parameters={"width": 300})
    page.goto(f"/tasks/{task_id}")
    expecting(page.get_by_role("heading", level=1)).to_contain_text("draw for emil")
    expecting(page.get_by_role("heading", level=1)).to_contain_text("waits")
    (task,) = [one for one in worker.take() if one["task_id"] == task_id]
    expecting(page.get_by_role("heading", level=1)).to_contain_text("runs")
    worker.progress(task, fraction=0.25, message="frame 5 of 20", output=["first line"])
    expecting(page.get_by_text("frame 5 of 20")).to_be_visible()
    expecting(page.get_by_label("Output")).to_contain_text("first line")
    worker.complete(task, {"width": 300})
    expecting(page.get_by_role("heading", level=1)).to_contain_text("completed")
    expecting(page.locator(".life .ring.end")).to_be_visible()
    expecting(page.get_by_label("Output")).to_have_text("first line\n")


def test_parameters_and_result_are_hidden_until_asked_for(
    page: Page, api: httpx.Client, worker: WorkerOverHttp
) -> None:
    task_id = submit(api, parameters={"prompt": "a robot"})
    (task,) = [one for one in worker.take() if one["task_id"] == task_id]
    worker.complete(task, {"url": "a-file"})
    page.goto(f"/tasks/{task_id}")
    expecting(page.get_by_role("button", name="Show result")).to_be_visible()
    expecting(page.get_by_text("a robot")).to_have_count(0)
    page.get_by_role("button", name="Show parameters").click()
    expecting(page.get_by_text("a robot")).to_be_visible()
    page.get_by_role("button", name="Show result").click()
    expecting(page.get_by_text("a-file")).to_be_visible()


def test_it_is_cancelled_after_a_confirmation(page: Page, api: httpx.Client) -> None:
    task_id = submit(api)
    page.goto(f"/tasks/{task_id}")
    page.get_by_role("button", name="Cancel…").click()
    expecting(page.get_by_role("group", name="Cancel draw for emil?")).to_contain_text("will never start")
    page.get_by_role("button", name="Let it be").click()
    assert api.get(f"/api/v1/tasks/{task_id}").json()["status"] == "queued"
    page.keyboard.press("c")
    page.get_by_role("button", name="Cancel the task").click()
    expecting(page.get_by_role("heading", level=1)).to_contain_text("cancelled")
    assert api.get(f"/api/v1/tasks/{task_id}").json()["status"] == "cancelled"


def test_a_dead_letter_is_replayed_with_a_reason(page: Page, api: httpx.Client, failed: str) -> None:
    page.goto(f"/tasks/{failed}")
    expecting(page.locator(".traceback .own")).to_contain_text("/srv/draw.py")
    expecting(page.locator(".traceback .err")).to_have_text("MemoryError: 3 GiB wanted")
    expecting(page.get_by_text("site-packages")).to_have_count(0)
    page.get_by_role("button", name="Show 1 frame of libraries").click()
    expecting(page.get_by_text("site-packages")).to_be_visible()
    page.get_by_role("button", name="Replay…").click()
    page.get_by_label("Reason").fill("more memory: größer")
    page.get_by_role("button", name="Replay the task").click()
    expecting(page.get_by_role("heading", level=1)).to_contain_text("waits")
    (entry,) = api.get("/api/v1/audit?limit=1").json()["entries"]
    assert (entry["act"], entry["reason"]) == ("replay", "more memory: größer")


def test_texts_of_others_stay_texts(page: Page, api: httpx.Client, worker: WorkerOverHttp) -> None:
    for text in TEXTS:
        task_id = submit(
            api, user_id=text, trace_id=text, size_hint=text, idempotency_key=text, parameters={text: text}
        )
        (task,) = [one for one in worker.take() if one["task_id"] == task_id]
        worker.progress(task, fraction=0.5, message=text, output=[text, {"a": text}])
        worker.fail(task, code="bad", message=text, traceback=f'Traceback:\n  File "{text}", line 1\n{text}')
        page.goto(f"/tasks/{task_id}")
        page.get_by_role("button", name="Show parameters").click()
        expecting(page.get_by_label("Parameters")).to_contain_text(json.dumps(text)[1:40])
        expecting(page.locator(".output")).to_be_visible()
        assert_harmless(page)


def test_a_name_that_looks_like_code_is_a_name(page: Page, api: httpx.Client) -> None:
    task_id = submit(api, task_type=NAME_LIKE)
    page.goto(f"/tasks/{task_id}")
    expecting(page.get_by_role("heading", level=1)).to_contain_text(NAME_LIKE)
    assert_harmless(page)


def test_an_unknown_task_says_so(page: Page) -> None:
    page.goto("/tasks/01890000-0000-7000-8000-000000000000")
    expecting(page.get_by_role("alert")).to_contain_text("There is no such task")


def test_everybody_can_read_it_everywhere(page: Page, failed: str, shots: Path) -> None:
    page.goto(f"/tasks/{failed}")
    expecting(page.locator(".traceback")).to_be_visible()
    assert accessibility_problems(page) == []
    page.keyboard.press("t")
    assert accessibility_problems(page) == []
    assert sideways_scroll(page) == {}
    shoot(page, shots, "task")
