"""A task with a limit of two at once, which this app declares; it keeps its own record."""

import asyncio
import os
from pathlib import Path

from fairlead import Context, Fairlead

fl = Fairlead()
fl.limit("gpu", 2)


@fl.task(limits={"gpu": 1})
async def hold(record: str, seconds: float, ctx: Context) -> int:
    """Notes its beginning and its end, also when it is stopped, in a file that all runs append to."""
    _append(Path(record), f"began {ctx.task_id} {ctx.fence}\n")
    try:
        await asyncio.sleep(seconds)
    finally:
        _append(Path(record), f"ended {ctx.task_id} {ctx.fence}\n")
    return ctx.fence


def _append(path: Path, line: str) -> None:
    """In one write: lines of several processes do not mix."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
