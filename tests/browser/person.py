"""What tests of pages do again and again: look, measure, and work through the queue beside them."""

import asyncio
import json
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import httpx
from playwright.sync_api import Page
from playwright.sync_api import expect as expecting

T = TypeVar("T")
PATIENT = 30_000  # ms: a busy machine
WIDTHS = (360, 768, 1440, 3840)
THEMES = ("light", "dark")
SERIOUS = ("serious", "critical")

__all__ = ["expecting"]


def run_elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """In an event loop of another thread: in this one Playwright's is running."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


@cache
def axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text()


def accessibility_problems(page: Page) -> list[str]:
    """What axe-core calls serious or critical, with the elements."""
    page.evaluate(axe())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:150]}"
        for one in found["violations"]
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]


def sideways_scroll(page: Page, *widths: int) -> dict[int, int]:
    """By width of the window: by how many pixels the page is wider. {}: it fits everywhere."""
    found = {}
    for width in widths or WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if over > 0:
            found[width] = over
    return found


def shoot(page: Page, folder: Path, name: str) -> None:
    """In both themes on a desk, and on a phone."""
    for theme in THEMES:
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        page.set_viewport_size({"width": 1440, "height": 900})
        page.screenshot(path=folder / f"{name}-1440-{theme}.png")
    page.set_viewport_size({"width": 390, "height": 844})
    page.screenshot(path=folder / f"{name}-390.png")


class WorkerOverHttp:
    """Runs nothing: it takes tasks and reports on them when the test says so."""

    def __init__(self, api: httpx.Client, **offers: Any) -> None:
        self._api = api
        offers = {"capacity": 100, "name": "bench", **offers}
        self.id = self._post("/internal/workers/register", offers)["worker_id"]

    def take(self, most: int = 100) -> list[dict[str, Any]]:
        polled = self._post(f"/internal/workers/{self.id}/poll", {"available_capacity": most})
        tasks: list[dict[str, Any]] = polled["tasks"]
        return tasks

    def complete(self, task: dict[str, Any], result: Any = None) -> None:
        self._report(task, status="completed", result=result)

    def fail(self, task: dict[str, Any], **error: Any) -> None:
        self._report(task, status="failed", error={"retriable": False, **error})

    def progress(self, task: dict[str, Any], **said: Any) -> None:
        report = {"task_id": task["task_id"], "fence": task["fence"], **said}
        self._post(f"/internal/workers/{self.id}/progress", {"reports": [report]})

    def leave(self) -> None:
        """As one that has died: what it still has returns to the queue."""
        self._post(f"/internal/workers/{self.id}/expire", {})

    def _report(self, task: dict[str, Any], **outcome: Any) -> None:
        facts = {"task_id": task["task_id"], "fence": task["fence"], **outcome}
        self._post(f"/internal/workers/{self.id}/result", facts)

    def _post(self, path: str, body: Any) -> dict[str, Any]:
        answer = self._api.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
        assert answer.status_code < 300, answer.text
        known: dict[str, Any] = answer.json()
        return known
