"""examples/asymptote with many visitors: shortened and halted ones see it, and no limit is exceeded."""

import asyncio
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.api.requests import TASKS, submit
from tests.compose_stack import get
from tests.examples.test_asymptote_page import page_of
from tests.examples.test_asymptote_sandbox import asy_of, is_alive
from tests.examples.test_progress_page import PATIENT, started
from tests.examples.test_readmes import copy_of
from tests.pages import PORT
from tests.programs import need_asymptote
from tests.waiting import wait_until
from tests.wheel import Wheel

#: Those of the example, with other times, and how many tasks of a tier and of longer ones may run.
SECONDS = {"fast": 8, "medium": 12, "slow": 40}
MOST = {"fast": 4, "medium": 2, "slow": 1}
TIERS = """
[worker]
capacity = 4
[tiers]
fast = { seconds = 8 }
medium = { seconds = 12, limit = "50%" }
slow = { seconds = 40, limit = 1 }
"""
TWO_PLACES = "[worker]\ncapacity = 2\n[tiers]\nfast = { seconds = 60 }\n"

#: The tasks of the example, which note when they begin, when their deadline moves, and when they end.
RECORDED = """
import functools
import json
import time

import app
from fairlead import Context, Fairlead

fl = Fairlead("http://127.0.0.1:8000")
notes = open("notes.jsonl", "w", buffering=1)


def recorded(function):
    @functools.wraps(function)
    async def run(ctx: Context, **given):
        def note(deadline):
            print(json.dumps({"task": ctx.task_id, "tier": ctx.tier, "deadline": deadline}), file=notes)

        note(ctx.deadline_ms)
        ctx.on_deadline(lambda _: note(ctx.deadline_ms))
        try:
            return await function(ctx=ctx, **given)
        finally:
            note(None)

    return run


for task in (app.picture, app.shell):
    fl.task(task.task_type, timeout=60, max_retries=0)(recorded(task.handler.function))
"""


def most_at_once(notes: list[dict[str, Any]]) -> Counter[str]:
    """By the record of the handlers: how many runs of each tier, and of longer ones, there were at once."""
    started_at: dict[str, int] = {}
    tier_of: dict[str, str] = {}
    most: Counter[str] = Counter()
    names = list(SECONDS)
    for note in notes:
        task, deadline = note["task"], note["deadline"]
        if deadline is None:
            del tier_of[task]
            continue
        tier = note["tier"] or "fast"  # a session has a unit of the shortest
        begun = started_at.setdefault(task, deadline - SECONDS[tier] * 1000)
        if note["tier"]:
            (tier,) = [name for name, seconds in SECONDS.items() if begun + seconds * 1000 == deadline]
        tier_of[task] = tier
        for place, name in enumerate(names):
            most[name] = max(most[name], sum(held in names[place:] for held in tier_of.values()))
    return most


async def another(page: Page, path: str) -> Page:
    """One more tab of the same browser."""
    opened = await page.context.new_page()
    await opened.goto(page.url.rstrip("/") + path)
    return opened


async def converse(page: Page, line: str) -> None:
    await page.get_by_role("textbox", name="Line").fill(line)
    await page.get_by_role("button", name="Send").click()


@pytest.mark.long
@pytest.mark.timeout(150)
async def test_twenty_pictures_shorten_one_and_halt_a_session_in_sight_of_their_users(
    wheel: Wheel, tmp_path: Path
) -> None:
    need_asymptote()
    folder, env = copy_of("asymptote", tmp_path)
    port, path = env["FAIRLEAD_SERVER__PORT"], wheel.path("uvicorn")
    (folder / "fairlead.toml").write_text(TIERS)
    (folder / "recorded.py").write_text(PORT.sub(lambda _: port, RECORDED))

    async with (
        page_of(folder, env, path) as (page, stack),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=40) as api,
    ):
        await stack.enter_async_context(started(folder, path, "fairlead", "worker", "recorded:fl"))
        state, badge, notice = page.locator("#state"), page.locator("#tier"), page.locator("#notice")
        await page.get_by_label("Source").fill('write("begun"); sleep(60);')
        await page.get_by_role("button", name="Draw").click()
        await expect(badge).to_have_text("slow", timeout=PATIENT)
        await expect(page.locator("#left")).to_contain_text("s left")
        await expect(notice).to_be_hidden()

        shell = await another(page, "/shell.html")
        await shell.get_by_role("button", name="Start").click()
        await converse(shell, "write(6 * 7);")
        await expect(shell.get_by_role("log")).to_contain_text("42", timeout=PATIENT)

        async def picture(number: int, duration: str | None) -> str:
            source = f"usleep(300000); write({number});" + ("draw(unitcircle);" if number % 10 == 5 else "")
            task = await submit(api, "picture", parameters={"source": source}, duration=duration)
            return str(task["task_id"])

        mix = ["slow", "medium", "fast", None] * 5
        pictures = [await picture(0, mix[0])]
        await expect(notice).to_have_text("Shortened to 12 s because others are waiting", timeout=PATIENT)
        pictures += await asyncio.gather(*(picture(n, mix[n]) for n in range(1, 20)))
        await expect(shell.get_by_role("status")).to_have_text(
            "Your session was ended because somebody needs the slot.", timeout=PATIENT
        )
        await expect(state).to_have_text("Its time was over; until then it wrote:", timeout=PATIENT)
        await expect(page.locator("#said")).to_have_text("begun\n")
        await expect(notice).to_be_visible()

        async def tasks() -> list[dict[str, Any]]:
            return list((await api.get(TASKS, params={"limit": 50})).json()["tasks"])

        async def all_ended() -> bool:
            return all(task["status"] not in ("queued", "executing") for task in await tasks())

        await wait_until(all_ended, 60, "all have ended")
        ended = {task["task_id"]: task for task in await tasks()}
        assert Counter(ended[one]["status"] for one in pictures) == {"completed": 20}
        assert [ended[one]["duration"] for one in pictures] == mix
        (shortened,) = [ended[one] for one in ended.keys() - pictures if ended[one]["task_type"] == "picture"]
        assert shortened["truncated"]
        assert [change["tier"] for change in shortened["tiers"]][:2] == ["slow", "medium"]
        most = most_at_once([json.loads(line) for line in (folder / "notes.jsonl").read_text().splitlines()])
        assert 2 < most["fast"] <= MOST["fast"] and 0 < most["medium"] <= MOST["medium"]
        assert most["slow"] == MOST["slow"]
        doctor = [str(Path(path.split(":")[0]) / "fairlead"), "doctor"]
        done = await asyncio.to_thread(
            subprocess.run, doctor, cwd=folder, env={"HOME": str(tmp_path), "PATH": path}, capture_output=True
        )
        assert b"every invariant holds" in done.stdout, done


@pytest.mark.long
@pytest.mark.timeout(150)
async def test_a_visitor_converses_draws_and_is_refused_when_all_are_busy(
    wheel: Wheel, tmp_path: Path
) -> None:
    need_asymptote()
    folder, env = copy_of("asymptote", tmp_path)
    (folder / "fairlead.toml").write_text(TWO_PLACES)
    path = wheel.path("uvicorn")
    async with page_of(folder, env, path) as (page, stack):
        worker = await stack.enter_async_context(started(folder, path, "fairlead", "worker", "app:fl"))
        first, second, third = [await another(page, "/shell.html") for _ in range(3)]
        await first.set_viewport_size({"width": 360, "height": 640})
        log, state = first.get_by_role("log"), first.locator("#state")

        async def has_worker() -> bool:
            answer = await get(f"http://127.0.0.1:{env['FAIRLEAD_SERVER__PORT']}/api/v1/workers")
            return answer is not None and bool(answer.json()["workers"])

        await wait_until(has_worker, 40, "there is a worker")
        await first.get_by_role("button", name="Start").click()
        await converse(first, "path p = (0,0)--(1,1);")
        await converse(first, "drow(p);")
        await converse(first, "draw(p);")
        await expect(log).to_contain_text("no matching variable 'drow'", timeout=PATIENT)
        await first.get_by_role("button", name="Draw").click()
        await expect(state).to_have_text("Drawn", timeout=PATIENT)  # without the mistake
        assert await first.evaluate("document.documentElement.scrollWidth") <= 360

        await second.get_by_role("button", name="Start").click()
        await converse(second, "sleep(60);")
        await wait_until(lambda: len(asy_of(worker.pid)) == 2, because="both run")
        await third.get_by_role("button", name="Start").click()
        await expect(third.get_by_role("status")).to_contain_text("All back ends are busy", timeout=PATIENT)

        both = asy_of(worker.pid)
        await second.close()
        await wait_until(lambda: sum(map(is_alive, both)) == 1, because="one has ended with its tab")
        await converse(first, "write(42 * length(p));")
        await expect(log).to_contain_text("42", timeout=PATIENT)
        await converse(first, "quit")
        await expect(first.get_by_role("status")).to_have_text("Asymptote has ended.", timeout=PATIENT)
        await first.get_by_role("button", name="Start").click()
        await converse(first, "write(1 - 2);")
        await expect(log).to_contain_text("-1", timeout=PATIENT)
        await first.get_by_role("button", name="End", exact=True).click()
        await expect(first.get_by_role("status")).to_have_text("The session has ended.", timeout=PATIENT)
