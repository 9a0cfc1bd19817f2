"""The page Now: the headline, now and next, figures and tables; live, by keyboard, and as a table."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from playwright.sync_api import Page

from fairlead.estimates.expected import WORKERS
from tests.api.serving import Gateway
from tests.browser.forecasts import in_turn, show
from tests.browser.hostile import TEXTS, assert_harmless
from tests.browser.person import (
    WorkerOverHttp,
    accessibility_problems,
    expecting,
    shoot,
    sideways_scroll,
)
from tests.browser.scene import submit

USERS = ("ann", "ben", TEXTS[1], TEXTS[4])


@pytest.fixture
def tasks(api: httpx.Client, gateway: Gateway, worker: WorkerOverHttp) -> list[dict[str, Any]]:
    """One runs, three wait for the same slot, and the forecast says when."""
    assert api.put("/api/v1/limits/gpu", json={"limit": 1}).status_code == 200
    bodies = [{"task_type": "draw", "user_id": user, "limits": {"gpu": 1}} for user in USERS]
    answers = [api.post("/api/v1/tasks", json=body) for body in bodies]
    assert {answer.status_code for answer in answers} == {201}, answers[0].text
    made = [answer.json() | body for answer, body in zip(answers, bodies, strict=True)]
    (running,) = worker.take()
    made.sort(key=lambda task: task["task_id"] != running["task_id"])
    made[0] |= running
    show(gateway, gpu=in_turn(made, running=1))
    return made


@pytest.fixture(autouse=True)
def nothing_left(api: httpx.Client) -> None:
    for status in ("queued", "executing"):
        for task in api.get(f"/api/v1/tasks?status={status}&limit=200").json()["tasks"]:
            api.delete(f"/api/v1/tasks/{task['task_id']}")


def test_the_headline_names_what_decides_the_pace(page: Page, tasks: list[dict[str, Any]]) -> None:
    page.goto("/")
    expecting(page.get_by_role("heading", level=1)).to_contain_text(
        "gpu decides the pace: 3 wait for its one slot, the last until about"
    )


def test_bars_show_who_holds_a_slot_and_who_is_next(page: Page, tasks: list[dict[str, Any]]) -> None:
    page.goto("/")
    expecting(page.locator("a.bar.run")).to_have_count(1)
    expecting(page.locator("a.bar.run")).to_contain_text(tasks[0]["user_id"])
    expecting(page.locator("a.bar.next")).to_have_count(3)
    places = page.locator("a.bar.next").evaluate_all(
        "bars => bars.map(bar => bar.getBoundingClientRect().left)"
    )
    assert places == sorted(places)
    now = page.locator(".over .now").bounding_box()
    assert now and now["x"] < places[0], "what is expected is right of now"


def test_without_limits_the_slots_of_the_workers_are_drawn(
    page: Page, api: httpx.Client, gateway: Gateway, worker: WorkerOverHttp
) -> None:
    made = [submit(api) for _ in range(2)]
    worker.take()
    tasks = [{"task_id": task_id, "task_type": "draw"} for task_id in made]
    show(gateway, **{WORKERS: in_turn(tasks, running=1)})
    page.goto("/")
    expecting(page.get_by_text("all workers")).to_be_visible()
    expecting(page.locator("a.bar.run")).to_have_count(1)
    expecting(page.locator("a.bar.next")).to_have_count(1)


def test_it_changes_without_a_reload(
    page: Page, gateway: Gateway, worker: WorkerOverHttp, tasks: list[dict[str, Any]]
) -> None:
    page.goto("/")
    expecting(page.locator("a.bar.run")).to_contain_text(tasks[0]["user_id"])
    page.evaluate("window.notReloaded = true")
    worker.complete(tasks[0])
    worker.take()
    show(gateway, gpu=in_turn(tasks[1:], running=1))
    expecting(page.locator("a.bar.run")).to_contain_text(tasks[1]["user_id"])
    ended = re.compile(f"gpu: {tasks[0]['user_id']}, draw, low, ran until")
    expecting(page.locator(".bar.done").first).to_have_attribute("aria-label", ended)
    expecting(page.get_by_role("heading", level=1)).to_contain_text("2 wait for its one slot")
    assert page.evaluate("window.notReloaded")


def test_a_task_is_followed_and_that_is_in_the_address(page: Page, tasks: list[dict[str, Any]]) -> None:
    page.goto(f"/?follow={tasks[2]['task_id']}")
    expecting(page.locator(".follow")).to_contain_text(f"{tasks[2]['user_id']}\u2019s draw")
    expecting(page.locator("a.bar.sel")).to_have_attribute("data-task", tasks[2]["task_id"])
    expecting(page.locator(".ring.end")).to_have_count(1)
    page.get_by_role("button", name="Follow another").click()
    expecting(page.locator(".follow")).not_to_contain_text(f"{tasks[2]['user_id']}\u2019s draw")
    assert "follow=" in page.url and tasks[2]["task_id"] not in page.url


def test_windows_and_keys(page: Page, gateway: Gateway, tasks: list[dict[str, Any]]) -> None:
    page.goto("/")
    expecting(page.locator("a.bar.next")).to_have_count(3)
    before = page.locator("a.bar.run").bounding_box()
    page.keyboard.press("]")
    expecting(page.get_by_role("button", name="10 min")).to_have_attribute("aria-pressed", "true")
    assert "window=600" in page.url
    after = page.locator("a.bar.run").bounding_box()
    assert before and after and after["width"] < before["width"]
    page.go_back()
    expecting(page.get_by_role("button", name="2 min")).to_have_attribute("aria-pressed", "true")
    page.locator("a.bar.run").focus()
    page.keyboard.press("ArrowRight")
    expecting(page.locator("a.bar.next").first).to_be_focused()
    page.keyboard.press("Enter")
    expecting(page).to_have_url(f"{gateway.url}/tasks/{tasks[1]['task_id']}")


def test_a_chart_is_one_tab_stop_whatever_is_in_it(
    page: Page, gateway: Gateway, tasks: list[dict[str, Any]]
) -> None:
    stops = page.locator("a.bar[tabindex='0']")
    page.goto("/")
    expecting(page.locator("a.bar.run")).to_have_attribute("tabindex", "0")
    expecting(stops).to_have_count(1)
    page.locator("a.bar.run").focus()
    page.keyboard.press("ArrowRight")
    expecting(stops).to_be_focused()
    expecting(stops).to_have_css("outline-style", "solid")
    show(gateway, gpu=in_turn(tasks[1:], running=0))
    expecting(page.locator("a.bar.run")).to_have_count(0)
    expecting(stops).to_have_count(1)
    expecting(stops).to_be_focused()


def test_what_an_old_link_follows_may_be_gone(page: Page, tasks: list[dict[str, Any]]) -> None:
    for old in ("01890000-0000-7000-8000-000000000000", "nonsense"):
        page.goto(f"/?follow={old}")
        expecting(page.get_by_text("What was followed is not known")).to_be_visible()
        expecting(page.locator("a.bar.next")).to_have_count(3)
    page.get_by_role("button", name="Follow another").click()
    expecting(page.get_by_text("What was followed is not known")).to_have_count(0)
    expecting(page.locator("a.bar.sel")).to_have_count(1)


def test_what_the_history_has_lost_is_said_in_red(page: Page, gateway: Gateway) -> None:
    with redis.Redis.from_url(gateway.engine) as client:
        meta = f"{{fl:{gateway.namespace}}}:meta"
        client.hset(meta, mapping={"recorded": 0, "lost": 1_234})
        page.goto("/")
        alert = page.get_by_role("alert").filter(has_text="1,234 events lost")
        expecting(alert).to_have_class("bad")
        client.hdel(meta, "recorded", "lost")
    page.reload()
    expecting(page.get_by_text("Nothing waits")).to_be_visible()
    expecting(alert).to_have_count(0)


def test_the_same_facts_as_a_table(page: Page, tasks: list[dict[str, Any]]) -> None:
    page.goto("/")
    page.get_by_role("button", name="Show as a table").click()
    table = page.get_by_role("region", name="Who holds each limit, and who is next")
    expecting(table.get_by_role("row")).to_have_count(1 + len(tasks))
    expecting(table.get_by_role("row").nth(1)).to_contain_text("runs")
    for user in USERS[1:]:
        expecting(table.get_by_text(user, exact=True)).to_be_visible()
    assert_harmless(page)


def test_who_wants_less_motion_sees_steps(page: Page, tasks: list[dict[str, Any]]) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto("/")
    expecting(page.locator(".tracks .layer").first).to_have_css("transition-property", "none")
    expecting(page.locator("a.bar.run")).to_have_css("transition-property", "none")
    expecting(page.locator(".live .dot").first).to_have_css("animation-name", "none")


def test_everybody_can_read_it_everywhere(page: Page, tasks: list[dict[str, Any]], shots: Path) -> None:
    page.goto("/")
    expecting(page.locator("a.bar.next")).to_have_count(3)
    assert_harmless(page)
    assert accessibility_problems(page) == []
    page.keyboard.press("t")
    assert accessibility_problems(page) == []
    assert sideways_scroll(page) == {}
    shoot(page, shots, "now")
