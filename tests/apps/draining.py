"""Tasks for real worker processes that are stopped."""

import asyncio
import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

from fairlead import Context, Fairlead

fl = Fairlead()


@fl.task
async def until(path: str, ctx: Context) -> str:
    """Runs until the file is there."""
    ctx.emit("began")
    while not Path(path).exists():
        await asyncio.sleep(0.02)
    return "done"


@fl.task(run_in="process")
def until_in_process(path: str, ctx: Context) -> str:
    ctx.emit("began")
    while not Path(path).exists():
        time.sleep(0.02)
    return "done"


@fl.task
async def never(ctx: Context) -> None:
    ctx.emit("began")
    await asyncio.Event().wait()


@fl.task
async def stubborn(ctx: Context) -> None:
    """Cannot be stopped by any kindness."""
    ctx.emit("began")
    while True:
        with contextlib.suppress(BaseException):
            await asyncio.sleep(1)


@fl.task
def sleeps(ctx: Context) -> None:
    """Neither can a call into C."""
    ctx.emit("began")
    time.sleep(600)


@fl.task
async def pid() -> int:
    return os.getpid()


@fl.task
async def notes(path: str) -> None:
    """Leaves a line for each time that it runs."""
    with Path(path).open("a") as file:
        file.write("1\n")


@fl.task
async def opens(path: str) -> bool:
    """Makes the file for which others wait."""
    Path(path).touch()
    return True


@fl.task
async def blocks_until(began: str, path: str, hold: str = "") -> int:
    """Blocks the event loop of its worker until the file exists, but no longer than half a minute.

    With `hold` it waits politely until that file is there, and only then takes the loop.
    """
    while hold and not Path(hold).exists():
        await asyncio.sleep(0.01)
    Path(began).touch()
    for _ in range(1500):
        if Path(path).exists():
            return os.getpid()
        time.sleep(0.02)
    raise TimeoutError(path)


@fl.task
async def blocks(path: str, deaf: bool = False) -> None:
    """Holds the event loop of its worker, and may take its signals too."""
    if deaf:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    Path(path).touch()
    time.sleep(600)


@fl.task
async def leaves(how: str) -> None:
    """Ends the process of its worker as if all were well."""
    if how == "exit":
        os._exit(0)
    if how == "native":
        ctypes.CDLL(None).exit(0)

    async def end() -> None:
        raise SystemExit(0)

    await asyncio.gather(end(), asyncio.sleep(1))
