"""Every page at all widths and in both themes, with hostile texts in every field."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page

from tests.api.serving import Gateway
from tests.browser.hostile import assert_harmless
from tests.browser.person import (
    THEMES,
    WorkerOverHttp,
    accessibility_problems,
    expecting,
    shoot,
    sideways_scroll,
)
from tests.browser.scene import Scene, fill

#: The address of each page with what is to be seen there.
PAGES = {
    "tasks": ("/tasks", "draw"),
    "jobs": ("/jobs/{job}", "Where the time goes"),
    "limits": ("/limits/gpu", "Holds it"),
    "types": ("/types/draw", "Its tasks"),
    "workers": ("/workers/{worker}", "Capabilities"),
    "dead-letters": ("/dead-letters/{dead}", "Traceback of the last run"),
    "crons": ("/crons", "Europe/Berlin"),
    "audit": ("/audit", "maintenance"),
    "what-if": ("/what-if", "As it is, 95 of 100 tasks start within"),
}


@pytest.fixture(scope="module")
def scene(gateway: Gateway) -> Iterator[Scene]:
    with httpx.Client(base_url=gateway.url, timeout=40, trust_env=False) as api:
        worker = WorkerOverHttp(api)
        yield fill(api, worker)
        worker.leave()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_fits_every_width_and_runs_no_text(
    page: Page, scene: Scene, shots: Path, name: str
) -> None:
    path, seen = PAGES[name]
    page.goto(path.format(**vars(scene)))
    expecting(page.get_by_text(seen).first).to_be_visible()
    assert_harmless(page)
    for theme in THEMES:
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert accessibility_problems(page) == [], theme
    shoot(page, shots, name)
    assert sideways_scroll(page) == {}
    assert_harmless(page)
    assert page.title().endswith("· Fairlead")


@pytest.mark.parametrize("path", ["/jobs/{job}", "/dead-letters/{dead}"])
def test_what_is_folded_is_text_too(page: Page, scene: Scene, path: str) -> None:
    page.goto(path.format(**vars(scene)))
    expecting(page.locator("details").first).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert_harmless(page)


def test_on_a_phone_what_was_chosen_is_shown_instead_of_the_list(page: Page, scene: Scene) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/limits")
    page.get_by_role("link", name="openai").click()
    expecting(page.get_by_role("heading", name="openai")).to_be_visible()
    expecting(page.get_by_role("group", name="Limits")).to_be_hidden()
    page.get_by_role("link", name="← Limits").click()
    expecting(page.get_by_role("group", name="Limits")).to_be_visible()


def test_empty_pages_say_what_to_do(page: Page, scene: Scene) -> None:
    for path, words in {
        "/tasks?q=nothing-like-this": "No task fits these filters.",
        "/jobs?status=CANCELLED": "No job fits these filters.",
        "/limits?q=nothing-like-this": "No limit fits these filters.",
        "/types?q=nothing-like-this": "No task type fits these filters.",
        "/dead-letters?q=nothing-like-this": "No dead letter fits these filters.",
    }.items():
        page.goto(path)
        expecting(page.get_by_text(words)).to_be_visible()
