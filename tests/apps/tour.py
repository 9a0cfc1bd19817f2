"""The app of the tour: what a user's own `tasks.py` would hold."""

import asyncio
import time
from datetime import datetime

from fairlead import Context, Fairlead, PermanentError, RetriableError

fl = Fairlead()
fl.limit("gpu", 1)  # one at a time, over all processes and machines

reports: list[datetime] = []


@fl.task
async def greet(name: str, polite: bool = False) -> str:
    return f"Good day, {name}" if polite else f"Hi {name}"


@fl.task(limits={"gpu": 1}, timeout=60)
async def draw(prompt: str) -> list[float]:
    """Needs the GPU for a moment; returns from when to when it had it."""
    began = time.monotonic()
    await asyncio.sleep(0.05)
    return [began, time.monotonic()]


@fl.task(max_retries=3)
async def call_flaky_api(ctx: Context) -> int:
    if ctx.attempt < 3:
        raise RetriableError("the API is busy", retry_after=0.01)
    return ctx.attempt


@fl.task
async def pay(eur: int) -> None:
    if eur > 100:
        raise PermanentError("the account is empty")


@fl.task
async def render(frames: int, ctx: Context) -> str:
    """Reports its progress, and emits its output."""
    for frame in range(frames):
        ctx.progress(frame / frames, f"frame {frame}")
        ctx.emit({"frame": frame})
        await asyncio.sleep(0.01)
    return "film.mp4"


@fl.task
async def wait_in_loop(ctx: Context) -> None:
    ctx.emit("began")
    await asyncio.Event().wait()


@fl.task
def wait_in_thread(ctx: Context) -> None:
    ctx.emit("began")
    while not ctx.cancelled:
        time.sleep(0.01)


@fl.task(run_in="process")
def wait_in_process(ctx: Context) -> None:
    ctx.emit("began")
    while True:
        time.sleep(0.01)


@fl.cron("30 2 * * *")
async def report(tick: datetime) -> None:
    reports.append(tick)
