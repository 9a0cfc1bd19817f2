"""Handlers that use their context; tests run each in the loop, in a thread and in a process."""

import threading
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from fairlead import Context, Fairlead

fl = Fairlead()


@dataclass
class Size:
    width: int
    height: int = 10


@fl.task(run_in="process")
def describes(size: Size, when: datetime, user_id: str = "nobody", **rest: Any) -> list[Any]:
    return [size.width * size.height, when.year, user_id, rest]


@fl.task(run_in="process")
def says_who_it_is(ctx: Context) -> dict[str, Any]:
    names = (
        "task_id",
        "task_type",
        "attempt",
        "fence",
        "user_id",
        "trace_id",
        "timeout_seconds",
        "cancelled",
    )
    return {name: getattr(ctx, name) for name in names} | {"deadline": ctx.deadline.timestamp()}


@fl.task(run_in="process")
def tells(ctx: Context) -> None:
    ctx.progress(0.25)
    ctx.progress(0.5, "half of it")
    ctx.emit({"line": 1})
    ctx.emit("two")
    growing = [3]
    ctx.emit(growing)
    growing.append(4)


@fl.task(run_in="process")
def emits(count: int, ctx: Context) -> None:
    for n in range(count):
        ctx.emit(n)


@fl.task(run_in="process")
def emits_from_threads(count: int, ctx: Context) -> None:
    def emit_all(name: str) -> None:
        for n in range(count):
            ctx.emit([name, n, 1000 * "x"])

    threads = [threading.Thread(target=emit_all, args=[name]) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@fl.task(run_in="process")
def emits_too_much(ctx: Context) -> None:
    ctx.emit("ë" * 40_000)  # more bytes than characters


@fl.task(run_in="process")
def emits_no_json(ctx: Context) -> None:
    ctx.emit({1, 2})


@fl.task(run_in="process")
def claims_more_than_all(ctx: Context) -> None:
    ctx.progress(1.5)


@fl.task(run_in="process")
def extends(seconds: float, ctx: Context) -> float:
    """Until its deadline has moved; the new one."""
    before = ctx.deadline
    ctx.extend(seconds)
    while ctx.deadline == before:
        time.sleep(0.01)
    return ctx.deadline.timestamp()


@fl.task(run_in="process")
def works_overtime(ctx: Context) -> str:
    """Runs for twice its timeout."""
    for _ in range(20):
        ctx.extend()
        time.sleep(ctx.timeout_seconds / 10)
    return "done"


@fl.task(run_in="process")
def asks_for_less(ctx: Context) -> str:
    ctx.extend(0.05)
    time.sleep(0.5)
    return "done"


@fl.task(run_in="process")
def notices(path: str, ctx: Context) -> None:
    """Cleans up when it is stopped, and notes what it saw."""
    try:
        ctx.emit("began")
        while True:
            time.sleep(0.01)
    finally:
        Path(path).write_text(f"cancelled: {ctx.cancelled}")


@fl.task(run_in="process")
def logs(ctx: Context) -> None:
    ctx.log.info("mixing %s", "colours")


@fl.task
async def floods(count: int, size: int, waits: bool, ctx: Context) -> int:
    for number in range(count):
        emitted = ctx.emit([number, "x" * size])
        if waits:
            await emitted
    return count


@fl.task
def floods_in_thread(count: int, size: int, waits: bool, ctx: Context) -> int:
    for number in range(count):
        ctx.emit([number, "x" * size])
    return count


@fl.task(run_in="process")
def floods_in_process(count: int, size: int, waits: bool, ctx: Context) -> int:
    for number in range(count):
        ctx.emit([number, "x" * size])
    return count
