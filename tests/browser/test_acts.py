"""What a person does on the pages, and what the gateway makes of it."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page

from tests.browser.person import WorkerOverHttp, expecting
from tests.browser.scene import fail_one, sent, submit


def audit(api: httpx.Client) -> list[tuple[str, str, str]]:
    entries = sent(api, "GET", "/api/v1/audit")["entries"]
    return [(one["act"], one["subject"], one["reason"]) for one in entries]


def press(page: Page, name: str | re.Pattern[str]) -> None:
    page.get_by_role("button", name=name, exact=isinstance(name, str)).first.click()


def press_key(page: Page, key: str, seen: Locator) -> None:
    """Until something is seen: the keys of a part work a moment after the part is shown."""
    while not seen.count():
        page.keyboard.press(key)
        page.wait_for_timeout(100)


def confirm(page: Page, verb: str, reason: str | None = None) -> None:
    """In the question in place, which is then gone."""
    question = page.locator("form.confirm")
    if reason is not None:
        question.get_by_label("Reason, kept in the audit log").fill(reason)
    question.get_by_role("button", name=verb, exact=True).click()
    expecting(question).to_have_count(0)


# Lists


def test_tasks_are_filtered_in_the_address_and_searched(page: Page, api: httpx.Client) -> None:
    submit(api, "sought", user_id="ann")
    submit(api, "other", user_id="bob")
    page.goto("/tasks")
    page.get_by_role("searchbox").fill("sough")
    expecting(page.get_by_role("link", name="sought")).to_be_visible()
    expecting(page.get_by_role("link", name="other")).to_have_count(0)
    expecting(page).to_have_url(re.compile("q=sough"))
    press(page, "Completed")
    expecting(page.get_by_text("No task fits these filters.")).to_be_visible()
    page.reload()
    expecting(page.get_by_role("button", name="Completed")).to_have_attribute("aria-pressed", "true")
    expecting(page.get_by_role("searchbox")).to_have_value("sough")
    page.go_back()
    expecting(page.get_by_role("button", name="All", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="sought").click()
    expecting(page.get_by_role("heading", name="sought for ann")).to_be_visible()
    press_key(page, "Escape", page.get_by_role("searchbox"))
    expecting(page.get_by_role("searchbox")).to_have_value("sough")
    page.keyboard.press("p")
    expecting(page).to_have_url(re.compile("q=sough&priority=high"))
    expecting(page.get_by_text("No task fits these filters.")).to_be_visible()


def test_a_list_is_live_and_its_order_is_held_under_the_pointer(page: Page, api: httpx.Client) -> None:
    submit(api, "first")
    page.goto("/tasks")
    expecting(page.get_by_role("link", name="first").first).to_be_visible()
    submit(api, "second")
    expecting(page.get_by_role("link", name="second").first).to_be_visible()
    page.get_by_role("link", name="second").first.hover()
    submit(api, "third")
    # tasks of other tests may change meanwhile
    expecting(page.get_by_text(re.compile(r"^\d+ changes?$"))).to_be_visible()
    expecting(page.get_by_role("link", name="third")).to_have_count(0)
    page.mouse.move(1, 1)
    expecting(page.get_by_role("link", name="third").first).to_be_visible()


def test_a_thousand_rows_are_read_as_somebody_scrolls(page: Page, api: httpx.Client) -> None:
    tasks = [{"task_type": "bulk", "delay_seconds": 3600} for _ in range(1_000)]
    sent(api, "POST", "/api/v1/tasks/batch", {"tasks": tasks})
    page.goto("/tasks?task_type=bulk")
    rows = page.get_by_role("status").filter(has_text=re.compile("rows$"))
    for count in (100, 300, 500, 700, 900, 1_000):
        expecting(rows).to_have_text(f"{count} rows")
        assert page.locator("a.lr").count() < 100
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
    names = page.get_by_role("link", name=re.compile("^bulk"))
    expecting(names.last).to_be_visible()
    assert names.count() < 100


def test_the_keyboard_moves_opens_and_closes(page: Page, api: httpx.Client) -> None:
    for name in ("key-a", "key-b"):
        sent(api, "PUT", f"/api/v1/limits/{name}", {"limit": 1})
    page.goto("/limits?q=key-")
    expecting(page.get_by_role("link", name="key-b")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expecting(page.get_by_role("link", name="key-b")).to_be_focused()
    page.keyboard.press("Enter")
    expecting(page.get_by_role("heading", name="key-b")).to_be_visible()
    press_key(page, "z", page.get_by_role("heading", name="Pause key-b?"))
    page.keyboard.press("Escape")
    expecting(page.locator("form.confirm")).to_have_count(0)
    while "/limits/key-b" in page.url:  # the keys of the page work a moment after the question is gone
        page.keyboard.press("Escape")
        page.wait_for_timeout(100)
    expecting(page).to_have_url(re.compile("/limits[?]q=key-$"))


def test_a_filter_on_the_page_looks_at_the_whole_list(page: Page, api: httpx.Client) -> None:
    names = [f"many-{number:03}" for number in range(350)]
    sent(api, "PUT", "/internal/declarations", {"types": {name: {} for name in names}})
    page.goto("/types?q=many-34")
    for name in names[-10:]:
        expecting(page.get_by_role("link", name=name)).to_be_visible()
    expecting(page.get_by_role("link", name=names[0])).to_have_count(0)


# Limits and types


def test_a_limit_is_created_changed_paused_resumed_and_deleted(page: Page, api: httpx.Client) -> None:
    page.goto("/limits")
    press(page, re.compile("^New limit"))
    page.get_by_label("Name", exact=True).fill("made")
    page.get_by_label("Units at a time; 0 pauses").fill("3")
    confirm(page, "Create made", "a new endpoint")
    expecting(page.get_by_role("heading", name="made")).to_be_visible()
    press(page, "Change…")
    page.get_by_label("Units at a time; 0 pauses").fill("5")
    confirm(page, "Change made", "größer")
    expecting(page.get_by_text("5 slots")).to_be_visible()
    press(page, re.compile("^Pause…"))
    confirm(page, "Pause made", "update")
    expecting(page.get_by_text("Paused: nothing more starts.")).to_be_visible()
    assert sent(api, "GET", "/api/v1/limits/made")["paused"]
    press(page, re.compile("^Resume…"))
    confirm(page, "Resume made", "done")
    expecting(page.get_by_text("Paused: nothing more starts.")).to_have_count(0)
    press(page, "Delete…")
    confirm(page, "Delete made", "gone")
    expecting(page).to_have_url(re.compile("/limits$"))
    assert audit(api)[:5] == [
        ("delete_limit", "made", "gone"),
        ("resume_limit", "made", "done"),
        ("pause_limit", "made", "update"),
        ("set_limit", "made", "größer"),
        ("set_limit", "made", "a new endpoint"),
    ]


def test_a_stuck_lease_is_freed(page: Page, api: httpx.Client) -> None:
    sent(api, "PUT", "/api/v1/limits/disk", {"limit": 1})
    sent(api, "POST", "/api/v1/limits/disk/leases", {"lease_seconds": 600, "holder": "backup"})
    page.goto("/limits/disk")
    press(page, re.compile("^Free lease"))
    confirm(page, "Free 1 unit", "the holder is gone")
    expecting(page.get_by_text("Nobody holds it now.")).to_be_visible()
    assert audit(api)[0][::2] == ("force_release", "the holder is gone")


def test_a_task_that_holds_a_limit_is_cancelled_there(
    page: Page, api: httpx.Client, worker: WorkerOverHttp
) -> None:
    sent(api, "PUT", "/api/v1/limits/lathe", {"limit": 1})
    task = submit(api, "turn", limits={"lathe": 1})
    worker.take()
    page.goto("/limits/lathe")
    press(page, re.compile("^Cancel task"))
    question = page.locator("form.confirm")
    expecting(question).to_contain_text("Its worker stops it, and its 1 unit are free then.")
    press(page, "Let it run")
    assert sent(api, "GET", f"/api/v1/tasks/{task}")["status"] == "executing"
    press(page, re.compile("^Cancel task"))
    confirm(page, "Cancel the task")
    assert sent(api, "GET", f"/api/v1/tasks/{task}")["status"] == "cancelled"
    worker.leave()  # until its worker has stopped it, it holds the limit
    expecting(page.get_by_text("Nobody holds it now.")).to_be_visible()


def test_what_the_gateway_refuses_is_said_in_place(page: Page, api: httpx.Client) -> None:
    sent(api, "PUT", "/api/v1/limits/needed", {"limit": 1})
    submit(api, "draw", limits={"needed": 1})
    page.goto("/limits/needed")
    press(page, "Delete…")
    page.get_by_role("button", name="Delete needed").click()
    expecting(page.get_by_role("alert")).to_contain_text("Limit needed is in use")


def test_a_type_is_paused_and_resumed(page: Page, api: httpx.Client) -> None:
    submit(api, "sing")
    page.goto("/types/sing")
    press(page, re.compile("^Pause…"))
    confirm(page, "Pause sing", "too loud")
    expecting(page.get_by_role("heading", name="sing is paused.")).to_be_visible()
    press(page, re.compile("^Resume…"))
    confirm(page, "Resume sing", "quiet")
    expecting(page.get_by_text("none of its tasks starts")).to_have_count(0)
    assert audit(api)[:2] == [("resume_type", "sing", "quiet"), ("pause_type", "sing", "too loud")]


# Dead letters, jobs, workers


def test_a_dead_letter_is_replayed_with_other_parameters(
    page: Page, api: httpx.Client, worker: WorkerOverHttp
) -> None:
    dead = fail_one(api, worker, message="width must be even")
    page.goto(f"/dead-letters/{dead}")
    press(page, re.compile("^Replay…"))
    field = page.get_by_role("textbox", name="Parameters")
    field.fill("{width: 2}")
    expecting(page.get_by_role("button", name="Replay the task")).to_be_disabled()
    field.fill('{"width": 2}')
    confirm(page, "Replay the task", "corrected")
    expecting(page).to_have_url(re.compile("/dead-letters$"))
    (again,) = [one for one in worker.take() if one["task_id"] == dead]
    assert again["parameters"] == {"width": 2}
    worker.complete(again)


@pytest.mark.parametrize(
    ("button", "verb", "act"), [("Replay these…", "Replay", "replay"), ("Delete these…", "Delete", "purge")]
)
def test_many_dead_letters_are_handled_by_the_filters_of_the_list(
    page: Page, api: httpx.Client, worker: WorkerOverHttp, button: str, verb: str, act: str
) -> None:
    kept = fail_one(api, worker, message="another problem")
    for _ in range(2):
        fail_one(api, worker, message=f"disk full before {act}")
    page.goto(f"/dead-letters?q=before {act}")
    press(page, button)
    confirm(page, f"{verb} 2 dead letters", "the disk is larger")
    expecting(page.get_by_text("No dead letter fits these filters.")).to_be_visible()
    assert audit(api)[0] == (act, f"text before {act}", "the disk is larger")
    listed = [one["task_id"] for one in sent(api, "GET", "/api/v1/dlq")["tasks"]]
    assert kept in listed


def test_a_job_is_resumed_and_cancelled(page: Page, api: httpx.Client, worker: WorkerOverHttp) -> None:
    sent(
        api,
        "PUT",
        "/internal/declarations",
        {"types": {"outline": {}, "bind": {}}, "pipelines": {"story": ["outline", "bind"]}},
    )
    job: dict[str, Any] = sent(api, "POST", "/api/v1/jobs", {"feature_name": "story", "user_id": "ann"})
    (step,) = [one for one in worker.take() if one["job_id"] == job["job_id"]]
    page.goto(f"/jobs/{job['job_id']}")
    expecting(page.get_by_role("heading", name="story for ann")).to_be_visible()
    worker.fail(step, message="no idea", code="empty")
    expecting(page.get_by_text("Stopped at step 1 of 2.")).to_be_visible()
    press(page, "Resume…")
    confirm(page, "Resume the job", "inspired")
    expecting(page.get_by_text("Stopped at step 1 of 2.")).to_have_count(0)
    press(page, re.compile("^Cancel…"))
    confirm(page, "Cancel the job")
    expecting(page.get_by_text("Cancelled at")).to_be_visible()
    assert sent(api, "GET", f"/api/v1/jobs/{job['job_id']}")["status"] == "CANCELLED"


def test_a_worker_is_drained_and_declared_dead(page: Page, api: httpx.Client, worker: WorkerOverHttp) -> None:
    other = WorkerOverHttp(api, name="lost-one", task_types=["lost"])
    task = submit(api, "lost")
    assert [one["task_id"] for one in other.take()] == [task]
    page.goto(f"/workers/{other.id}")
    press(page, "Drain…")
    confirm(page, "Drain the worker", "update")
    expecting(page.get_by_text("Draining: it gets no more tasks.")).to_be_visible()
    press(page, "Declare dead…")
    confirm(page, "Declare it dead", "its machine is gone")
    assert [entry[::2] for entry in audit(api)[:2]] == [
        ("expire", "its machine is gone"),
        ("drain", "update"),
    ]
    assert sent(api, "GET", f"/api/v1/tasks/{task}")["status"] == "queued"


# Audit and what if


def test_the_audit_shows_who_why_and_what_changed(page: Page, api: httpx.Client) -> None:
    sent(api, "PUT", "/api/v1/limits/audited", {"limit": 1})
    sent(api, "PUT", "/api/v1/limits/audited", {"limit": 7}, "more of it")
    page.goto("/audit")
    page.get_by_role("link", name=re.compile("set limit audited")).first.click()
    expecting(page.locator("dl.diff")).to_contain_text("limit1 became→ 7")
    expecting(page.get_by_role("region", name="set limit audited")).to_contain_text("more of it")
    press(page, "Check the chain")
    expecting(page.get_by_text("No entry was changed.")).to_be_visible()


def test_a_moved_slider_is_simulated(page: Page, api: httpx.Client, worker: WorkerOverHttp) -> None:
    sent(api, "PUT", "/api/v1/limits/press", {"limit": 1})
    for _ in range(4):
        submit(api, "print", limits={"press": 1})
    for _ in range(4):
        for task in worker.take():
            worker.complete(task)
    page.goto("/what-if")
    expecting(page.get_by_role("heading", level=1)).to_contain_text("As it is, 95 of 100")
    page.get_by_label("press, exact number").fill("0")
    page.keyboard.press("Enter")
    expecting(page.get_by_role("heading", level=1)).to_have_text(re.compile("4 tasks would never start."))
    press(page, "As they are")
    expecting(page.get_by_role("heading", level=1)).to_contain_text("As it is, 95 of 100")
    assert sent(api, "GET", "/api/v1/limits/press")["limit"] == 1
