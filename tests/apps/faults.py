"""Tasks for real worker processes that are killed, stopped, cut off and blocked while they run them."""

import asyncio
import ctypes
import os
import signal
import time
from typing import Any

from fairlead import Context, Fairlead
from tests.faults.sink import Sink

fl = Fairlead()

LOCKED = ctypes.PyDLL(None)  # the C library, called without releasing the interpreter lock


@fl.task
async def work(seconds: float) -> int:
    await asyncio.sleep(seconds)
    return os.getpid()


@fl.task
async def serve(record: str, customer: str, seconds: float, ctx: Context) -> None:
    """Notes its beginning and its end in a file that all runs append to."""
    _append(record, f"began {customer} {ctx.task_id}\n")
    await asyncio.sleep(seconds)
    _append(record, f"ended {customer} {ctx.task_id}\n")


@fl.task
async def write(sink: str, seconds: float, ctx: Context) -> int:
    """Has an external effect every few milliseconds; for this time at first, briefly when it is run again."""
    with Sink(sink) as out:
        out.write(ctx.task_id, ctx.fence)
        for _ in range(int(seconds / 0.02) if out.first_run(ctx.task_id) else 20):
            await asyncio.sleep(0.02)
            out.write(ctx.task_id, ctx.fence)
    return ctx.fence


@fl.task
async def block(sink: str, seconds: float, ctx: Context) -> int:
    """Blocks the event loop, then needs it again; not when it is run again."""
    with Sink(sink) as out:
        out.write(ctx.task_id, ctx.fence)
        time.sleep(seconds if out.first_run(ctx.task_id) else 0)
        out.write(ctx.task_id, ctx.fence)
    await asyncio.sleep(0.02)
    return ctx.fence


@fl.task
async def sleep_hard(seconds: float) -> float:
    """Blocks the event loop, then needs it again; returns how long that took."""
    began = time.monotonic()
    time.sleep(seconds)
    await asyncio.sleep(0.02)
    return time.monotonic() - began


@fl.task
async def sleep_at_once(seconds: float) -> float:
    """Blocks the event loop in the very round in which the worker is to look at its leases next."""
    watch: Any = next(one for one in asyncio.all_tasks() if "Worker._watch" in repr(one))
    while not (waits_for := watch._fut_waiter) or not waits_for.done():
        await asyncio.sleep(0)
    return await sleep_hard(seconds)


@fl.task
async def report_late(sink: str, seconds: float, ctx: Context) -> int:
    """Blocks the event loop and has its report ready at once afterwards; not when it is run again."""
    with Sink(sink) as out:
        out.write(ctx.task_id, ctx.fence)
        time.sleep(seconds if out.first_run(ctx.task_id) else 0)
    return ctx.fence


@fl.task
async def grip(seconds: float) -> float:
    """Holds the interpreter lock in one C call for this time; returns how long that took."""
    began = time.monotonic()
    LOCKED.usleep(round(seconds * 1e6))
    return time.monotonic() - began


@fl.task
async def linger(sink: str, runs: int, ctx: Context) -> int:
    """Does not end until it is run for the so-manieth time; which time it was."""
    with Sink(sink) as out:
        out.write(ctx.task_id, ctx.fence)
        run = len(out.read(ctx.task_id))
    await asyncio.sleep(600 if run < runs else 0)
    return run


@fl.task
def sit(sink: str, seconds: float, ctx: Context) -> int:
    """In a thread that nothing can interrupt; not when it is run again."""
    with Sink(sink) as out:
        out.write(ctx.task_id, ctx.fence)
        first = out.first_run(ctx.task_id)
    time.sleep(seconds if first else 0)
    return ctx.fence


@fl.task(run_in="process")
def sit_apart(sink: str, seconds: float, ctx: Context) -> int:
    return sit(sink, seconds, ctx)


@fl.task(timeout=0.2, max_retries=0)
def hang() -> None:
    """In a thread that nothing can interrupt."""
    time.sleep(600)


@fl.task
async def die() -> None:
    """A poison pill: kills the process that runs it."""
    os.kill(os.getpid(), signal.SIGKILL)


@fl.task
async def beget(sink: str, ctx: Context) -> None:
    """Forks; the child survives and holds everything that its parent held."""
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    with Sink(sink) as out:
        out.write(ctx.task_id, ctx.fence)
    await asyncio.sleep(600)


@fl.task(run_in="process")
def desert() -> None:
    """Forks and dies; its child survives and holds everything that it held."""
    if os.fork() == 0:
        time.sleep(600)
    os._exit(7)


def _append(path: str, line: str) -> None:
    """In one write, which no other process can come between."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
