"""Handlers of elastic and interactive tasks; tests run each in the loop, in a thread and in a process."""

import asyncio
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from fairlead import Context, Fairlead

fl = Fairlead()


def _note_deadlines(ctx: Context) -> list[dict[str, Any]]:
    """What the context is at each call, growing; also emitted."""
    noted: list[dict[str, Any]] = []

    def note(deadline: datetime) -> None:
        noted.append({"deadline": deadline.timestamp(), "truncating": ctx.truncating})
        ctx.emit(noted[-1])

    ctx.on_deadline(note)
    ctx.emit({"tier": ctx.tier, "deadline": ctx.deadline.timestamp()})
    return noted


@fl.task(run_in="process")
def draws(ctx: Context) -> dict[str, Any]:
    """As much as there is time for."""
    noted = _note_deadlines(ctx)
    while not any(call["truncating"] for call in noted):
        time.sleep(0.01)
    return {"calls": noted, "cancelled": ctx.cancelled}


@fl.task(run_in="process")
async def draws_async(ctx: Context) -> dict[str, Any]:
    noted = _note_deadlines(ctx)
    while not any(call["truncating"] for call in noted):
        await asyncio.sleep(0.01)
    return {"calls": noted, "cancelled": ctx.cancelled}


@fl.task(run_in="process")
def ignores_its_deadline(ctx: Context) -> None:
    ctx.emit("began")
    while True:
        time.sleep(0.01)


@fl.task(run_in="process")
async def waits_for_ever(ctx: Context) -> None:
    ctx.on_deadline(lambda _: ctx.emit("deadline"))
    ctx.emit("began")
    try:
        await asyncio.Event().wait()
    finally:
        ctx.emit("cancelled")


@fl.task(run_in="process")
def raises_in_its_grace(ctx: Context) -> None:
    ctx.emit("began")
    while not ctx.truncating:
        time.sleep(0.01)
    raise ValueError("half a picture")


@fl.task(run_in="process")
def returns_at_once() -> str:
    return "done"


@fl.task(run_in="process")
def replies(notes: str, ctx: Context) -> int:
    """Until the client says goodbye; notes how it ended."""
    count = 0
    try:
        for frame in ctx.frames():
            count += 1
            ctx.emit({"to": frame})
            if frame == "goodbye":
                break
    finally:
        Path(notes).write_text(f"cancelled: {ctx.cancelled}")
    return count


@fl.task(run_in="process")
async def replies_async(notes: str, ctx: Context) -> int:
    count = 0
    try:
        async for frame in ctx.frames():
            count += 1
            await ctx.emit({"to": frame})
            if frame == "goodbye":
                break
    finally:
        Path(notes).write_text(f"cancelled: {ctx.cancelled}")
    return count


@fl.task(run_in="process")
async def reads_patiently(count: int, ctx: Context) -> list[Any]:
    """That many frames; it says when it has waited for a while."""
    found: list[Any] = []
    while len(found) < count:
        try:
            async with asyncio.timeout(0.1):
                found.append(await anext(ctx.frames()))
        except TimeoutError:
            ctx.emit("still waiting")
    return found


@fl.task
def holds(record: str, seconds: float, ctx: Context) -> None:
    """Appends a line when it begins and every few milliseconds: its run, its tier, and the time."""
    end = time.monotonic() + seconds
    with Path(record).open("a", buffering=1) as out:
        while time.monotonic() < end and not ctx.cancelled:
            out.write(f"{ctx.task_id} {ctx.fence} {ctx.tier} {time.monotonic_ns()}\n")
            time.sleep(0.005)
