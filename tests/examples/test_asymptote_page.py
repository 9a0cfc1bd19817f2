"""examples/asymptote in a real browser: source is sent, waits, and comes back as a picture."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tests.compose_stack import get
from tests.examples.test_progress_page import PATIENT, opened, started
from tests.examples.test_readmes import copy_of
from tests.programs import need_asymptote, need_browser
from tests.waiting import wait_until
from tests.wheel import Wheel


@asynccontextmanager
async def page_of(folder: Path, env: dict[str, str], path: str) -> AsyncIterator[tuple[Page, AsyncExitStack]]:
    """The page with its gateway, and no worker yet: whoever needs one enters it."""
    (url,) = re.findall(r"<(http://127\S+)>", (folder / "README.md").read_text())

    async def is_served() -> bool:
        return await get(url) is not None

    async with AsyncExitStack() as stack:
        port = env["FAIRLEAD_SERVER__PORT"]
        await stack.enter_async_context(started(folder, path, "fairlead", "server", "--port", port))
        await stack.enter_async_context(started(folder, path, "python", "web.py"))
        await wait_until(is_served, 40, "the page is served")
        yield await stack.enter_async_context(opened(url, need_browser())), stack


@pytest.mark.long
@pytest.mark.timeout(150)
async def test_source_waits_and_comes_back_as_a_picture(wheel: Wheel, tmp_path: Path) -> None:
    need_asymptote()
    folder, env = copy_of("asymptote", tmp_path)
    path = wheel.path("uvicorn")

    async def are_cancelled(number: int) -> bool:
        answer = await get(f"http://127.0.0.1:{env['FAIRLEAD_SERVER__PORT']}/api/v1/tasks?status=cancelled")
        return answer is not None and len(answer.json()["tasks"]) == number

    async with page_of(folder, env, path) as (page, stack):
        draw, stop = (page.get_by_role("button", name=name) for name in ("Draw", "Stop"))
        state, picture, said = page.locator("#state"), page.locator("#picture"), page.locator("#said")

        async def is_shown() -> bool:
            return bool(await picture.evaluate("image => image.complete && image.naturalWidth > 200"))

        await page.set_viewport_size({"width": 360, "height": 640})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360

        await draw.click()
        await expect(state).to_have_text("Waiting: number 1 in the queue", timeout=PATIENT)
        await stop.click()
        await expect(state).to_have_text("Stopped", timeout=PATIENT)
        await draw.click()
        await expect(state).to_have_text("Waiting: number 1 in the queue", timeout=PATIENT)
        await page.reload()  # a visitor who leaves
        await wait_until(lambda: are_cancelled(2), 40, "both are cancelled")

        await stack.enter_async_context(started(folder, path, "fairlead", "worker", "app:fl"))
        for kind in ("svg", "png"):
            await page.get_by_label("Picture").select_option(kind)
            await draw.click()
            await expect(state).to_have_text("Drawn", timeout=PATIENT)
            await expect(picture).to_be_visible()
            await wait_until(is_shown, because="the browser could read the picture")

        await page.get_by_label("Source").fill('write("hello"); nothing;')
        await draw.click()
        await expect(said).to_contain_text("no matching variable 'nothing'", timeout=PATIENT)
        await expect(picture).to_be_hidden()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.timeout(60)
async def test_a_page_of_somebody_else_cannot_draw(wheel: Wheel, tmp_path: Path) -> None:
    folder, _ = copy_of("asymptote", tmp_path)
    (url,) = re.findall(r"<(http://127\S+)>", (folder / "README.md").read_text())

    async def is_refused() -> bool:
        with suppress(OSError):
            await connect(url.replace("http", "ws") + "/ws/tasks", origin=Origin("http://else.where"))
        return False

    async with started(folder, wheel.path("uvicorn"), "python", "web.py"):
        with pytest.raises(InvalidStatus, match="403"):
            await wait_until(is_refused, 40, "it is refused")
