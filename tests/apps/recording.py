"""Handlers that write down, all the time they run, until when they may."""

import time
from pathlib import Path

from fairlead import Context, Fairlead

fl = Fairlead()
PAUSE = 0.004


def note(record: str, ctx: Context) -> None:
    """The time is read before the deadline: at that time the run had this one, or a later one."""
    at = time.monotonic_ns()
    with Path(record).open("a") as out:
        out.write(f"{at} {ctx.fence} {round(ctx.deadline.timestamp() * 1000)}\n")


@fl.task
def paint(record: str, seconds: float, ctx: Context) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not ctx.cancelled:
        note(record, ctx)
        time.sleep(PAUSE)


@fl.task
def sit(record: str, ctx: Context) -> None:
    """A session that lasts until it is halted."""
    while not ctx.cancelled:
        note(record, ctx)
        time.sleep(PAUSE)
