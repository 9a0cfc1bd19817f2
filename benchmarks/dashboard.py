"""What an open page of the dashboard costs the server and the engine, and how lists scroll in Chromium.

Tasks are submitted, claimed and completed directly on the engine: the server works for the page alone.
"""

import asyncio
import contextlib
import shutil
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass

from playwright.async_api import Browser, CDPSession, Page, async_playwright

from benchmarks.bench import (
    HOUR,
    NO_AOF,
    WORKER,
    Bench,
    cpu_of,
    describe,
    drop_events,
    register,
    server_cpu,
    small_task,
)
from benchmarks.figures import Check, Figure, Outcome, percentile
from benchmarks.http import served
from fairlead.clock import monotonic
from fairlead.model.reports import Completed
from fairlead.model.task import MOST_PER_CALL
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.commands import FAIRLEAD
from tests.programs import BROWSERS

PAGES = {"Now": "/", "Tasks": "/tasks", "Limits": "/limits"}
#: With the height of a row.
LISTS = (("tasks", "/tasks?status=delayed", 48), ("limits", "/limits?sort=name", 36))
NOTCH = 400  # px of a turn of the wheel: a fast one
PAUSE = 0.1  # seconds between two batches
UNIT = "% of a core"
CALM = 10  # tasks per second
WATCH_FRAMES = """() => {
    window.frames = []; window.long = [];
    let last = performance.now();
    const step = (now) => { window.frames.push(now - last); last = now; requestAnimationFrame(step) };
    requestAnimationFrame(step);
    const note = (list) => window.long.push(...list.getEntries().map((entry) => entry.duration));
    new PerformanceObserver(note).observe({ type: "longtask" });
}"""
ROWS = "() => Math.round((document.querySelector('.rowsbox')?.offsetHeight ?? 0) / %d)"
TO_THE_END = "() => scrollTo(0, document.body.scrollHeight)"


@dataclass(frozen=True)
class Sizes:
    seconds: float = 5.0  # of each measurement
    rounds: int = 3
    rows: int = 10_000  # tasks, and limits
    rate: int = 1_000  # tasks per second
    turns: int = 300  # of the wheel


async def run(bench: Bench) -> Outcome:
    sizes = Sizes(2.0, 1, 300, 100, 20) if bench.quick else Sizes()
    outcome = Outcome(notes=[f"{sizes.rows:,} limits, {sizes.rate:,} tasks per second, history off, no AOF"])
    with bench.serve(*NO_AOF) as url, tempfile.TemporaryDirectory() as folder:
        outcome.servers["store"] = await describe(url)
        async with bench.store(url) as store, _chromium() as browser:
            await _prepare(store, sizes.rows)
            namespace = store.connection.keys.namespace
            command = [FAIRLEAD, "server", "--engine", url, "--namespace", namespace, "--port", "0"]
            with served(command, folder, {"FAIRLEAD_HISTORY__ENABLED": "false"}) as (pid, address):
                # first, while the tasks to be listed are the newest
                await _scroll(outcome, store, browser, address, sizes)
                for rate in (CALM, sizes.rate):
                    await _open_pages(outcome, Costs(store, pid), browser, address, sizes, rate)
                _judge(outcome, sizes.rate)
    return outcome


@contextlib.asynccontextmanager
async def _chromium() -> AsyncIterator[Browser]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit("this scenario needs Chromium: scripts/test-browser installs it")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path)
        yield browser
        await browser.close()


async def _prepare(store: Store, rows: int) -> None:
    """Limits, some of which are full and waited for, and tasks that start later, to be listed."""
    await register(store)
    for start in range(0, rows, 100):
        await asyncio.gather(
            *(store.limits.set(f"customer-{n}", Slots(2)) for n in range(start, start + 100))
        )
    for start in range(0, rows, MOST_PER_CALL):
        count = min(MOST_PER_CALL, rows - start)
        await store.submit(
            *(small_task(n, user_id=f"user-{n % 500}", delay_seconds=3600) for n in range(count))
        )
    waiting = [small_task(n, user_id=f"user-{n}", limits={f"customer-{n % 8}": 1}) for n in range(200)]
    await store.submit(*waiting)
    await store.claim(WORKER, len(waiting), lease_ms=HOUR)
    await drop_events(store)


class Flow:
    """Tasks that come and go at a steady rate, as far as the machine is fast enough: `done` of them."""

    def __init__(self, store: Store, rate: int) -> None:
        self._store = store
        self._batch = max(1, round(rate * PAUSE))
        self.done = 0

    async def run(self) -> None:
        held: list[Completed] = []
        due = monotonic()
        for number in range(1_000_000):
            await self._store.submit(*(small_task(n, user_id=f"user-{n % 50}") for n in range(self._batch)))
            _, claimed = await self._store.report(WORKER, held, claim=self._batch)
            self.done += len(held)
            held = [Completed(task.task_id, task.fence) for task in claimed.tasks]
            if number % 10 == 0:
                await drop_events(self._store)
            due = max(due + PAUSE, monotonic() - 1)
            await asyncio.sleep(max(0.0, due - monotonic()))

    @contextlib.asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        running = asyncio.create_task(self.run())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


class Costs:
    """Seconds of CPU of the server process and of the engine; forecasts are made beside them in any case."""

    def __init__(self, store: Store, pid: int) -> None:
        self._client = store.connection.client
        self._pid = pid
        self.store = store

    async def during(self, seconds: float) -> tuple[float, float]:
        """In percent of one core."""
        began, before = monotonic(), await self._now()
        await asyncio.sleep(seconds)
        after, took = await self._now(), monotonic() - began
        server, engine = (100 * (b - a) / took for a, b in zip(before, after, strict=True))
        return server, engine

    async def _now(self) -> tuple[float, float]:
        return cpu_of(self._pid), await server_cpu(self._client)


async def _open_pages(
    outcome: Outcome, costs: Costs, browser: Browser, address: str, sizes: Sizes, rate: int
) -> None:
    """Each page in turn, between measurements without one, so that a drift of the machine is in both."""
    used: dict[str, list[tuple[float, float]]] = defaultdict(list)
    flow, began = Flow(costs.store, rate), monotonic()
    async with flow.flowing():
        await asyncio.sleep(sizes.seconds)  # the first forecast is made
        for _ in range(sizes.rounds):
            for name, path in ({"": ""} | PAGES).items():
                page = await browser.new_page()
                if name:
                    await page.goto(address + path)
                    await page.get_by_role("status").filter(has_text="Live").wait_for()
                    await asyncio.sleep(2)  # its files are loaded
                used[name].append(await costs.during(sizes.seconds))
                await page.close()
    reached = flow.done / (monotonic() - began)
    for number, measure in enumerate(("server", "engine")):
        alone = [one[number] for one in used[""]]
        outcome.figures.append(Figure(f"no page, {rate:,} tasks/s", measure, UNIT, alone))
        for name in PAGES:
            more = [one[number] - before for one, before in zip(used[name], alone, strict=True)]
            outcome.figures.append(Figure(f"{name} is open, {rate:,} tasks/s", measure, UNIT, more))
    outcome.figures.append(Figure(f"no page, {rate:,} tasks/s", "reached", "tasks/s", [reached], "more"))


def _judge(outcome: Outcome, rate: int) -> None:
    """By the server at work, and by the engine when it is calm.

    A page asks for the same at any rate; the cost of a thousand tasks varies by more than that of a page.
    """
    for name in PAGES:
        server = outcome.find(f"{name} is open, {rate:,} tasks/s", "server").median
        engine = outcome.find(f"{name} is open, {CALM:,} tasks/s", "engine").median
        outcome.checks.append(
            Check(f"{name} is open", "< 2 % of a core", server + engine < 2, f"{server + engine:.2f} %")
        )


async def _scroll(outcome: Outcome, store: Store, browser: Browser, address: str, sizes: Sizes) -> None:
    """From the last row up with the wheel, while the lists are live."""
    async with Flow(store, 1).flowing():
        for name, path, height in LISTS:
            page = await browser.new_page(viewport={"width": 1440, "height": 900})
            await page.goto(address + path)
            await _load_all(page, ROWS % height, sizes.rows)
            elements = await page.locator("a.lr").count()
            frames, longest, cpu = await _turn_the_wheel(page, sizes)
            case = f"{sizes.rows:,} {name}"
            outcome.figures += [
                Figure(case, "frame p50", "ms", [percentile(frames, 50)]),
                Figure(case, "frame p99", "ms", [percentile(frames, 99)]),
                Figure(case, "longest task", "ms", [longest]),
                Figure(case, "CPU for a turn of the wheel", "ms", [cpu]),
                Figure(case, "rows in the page", "elements", [float(elements)]),
            ]
            await page.close()


async def _load_all(page: Page, rows: str, wanted: int) -> None:
    while await page.evaluate(rows) < wanted:
        await page.evaluate(TO_THE_END)
        await asyncio.sleep(0.05)


async def _turn_the_wheel(page: Page, sizes: Sizes) -> tuple[list[float], float, float]:
    """The times between two frames, the longest task that held the page up (0: none of 50 ms or more),
    and the CPU of the page's thread for each turn, which other work on the machine does not change; in ms."""
    await page.mouse.move(500, 500)
    await page.evaluate(WATCH_FRAMES)
    inspected = await page.context.new_cdp_session(page)
    await inspected.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = await _thread_seconds(inspected)
    for _ in range(sizes.turns):
        await page.mouse.wheel(0, -NOTCH)
        await asyncio.sleep(1 / 60)
    cpu = 1000 * (await _thread_seconds(inspected) - before) / sizes.turns
    frames: list[float] = await page.evaluate("window.frames.slice(1)")
    return frames, max(await page.evaluate("window.long"), default=0.0), cpu


async def _thread_seconds(inspected: CDPSession) -> float:
    metrics = (await inspected.send("Performance.getMetrics"))["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))
