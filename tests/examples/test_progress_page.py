"""examples/progress_page in a real browser: a click starts a task, and the bar shows how far it is."""

import re
from asyncio.subprocess import DEVNULL, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.compose_stack import get
from tests.examples.test_readmes import copy_of
from tests.programs import need_browser
from tests.waiting import wait_until
from tests.wheel import Wheel

PATIENT = 40_000  # ms: a busy machine


@asynccontextmanager
async def started(folder: Path, path: str, program: str, *arguments: str) -> AsyncIterator[Process]:
    (found,) = [file for one in path.split(":") if (file := Path(one) / program).exists()][:1]
    env = {"HOME": str(folder.parent), "PATH": path}
    process = await create_subprocess_exec(
        found, *arguments, cwd=folder, env=env, stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def opened(url: str, browser: str) -> AsyncIterator[Page]:
    """A page on which no script fails, nor on others of its context."""
    problems: list[str] = []
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=browser)
        context = await chromium.new_context()
        context.on("weberror", lambda problem: problems.append(str(problem.error)))
        page = await context.new_page()
        await page.goto(url)
        yield page
        await chromium.close()
    assert problems == []


@pytest.mark.long
@pytest.mark.timeout(150)
async def test_the_bar_shows_how_far_the_task_is(wheel: Wheel, tmp_path: Path) -> None:
    browser = need_browser()
    folder, _ = copy_of("progress_page", tmp_path)
    (url,) = re.findall(r"<(http://\S+)>", (folder / "README.md").read_text())
    path = wheel.path("uvicorn")

    async def is_served() -> bool:
        return await get(url) is not None

    async with (
        started(folder, path, "fairlead", "worker", "app:fl"),
        started(folder, path, "python", "app.py"),
    ):
        await wait_until(is_served, 40, "the page is served")
        async with opened(url, browser) as page:
            text, bar = page.locator("#text"), page.locator("#bar")
            await page.get_by_role("button", name="Render").click()
            await expect(text).to_have_text(re.compile(r"frame \d+ of 20"), timeout=PATIENT)
            assert 0 <= await bar.evaluate("bar => bar.value") < 1
            await expect(text).to_have_text("JOB_COMPLETE", timeout=PATIENT)
            assert await bar.evaluate("bar => bar.value") == 1
