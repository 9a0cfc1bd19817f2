"""Tasks and jobs with a limit of four at once; each run notes its beginning, its end and its fence."""

import asyncio
from pathlib import Path

from fairlead import Context, Fairlead
from tests.apps.limited import _append

fl = Fairlead()
fl.limit("gpu", 4)


@fl.task(limits={"gpu": 1})
async def hold(record: str, seconds: float, ctx: Context) -> None:
    await _run(record, seconds, ctx)


@fl.task(limits={"gpu": 1})
async def first(record: str, seconds: float, ctx: Context) -> dict[str, int]:
    await _run(record, seconds, ctx)
    return {"of_first": 1}


@fl.task(limits={"gpu": 1})
async def second(record: str, seconds: float, of_first: int, ctx: Context) -> None:
    """Needs what the first has returned: it came back with its job."""
    await _run(record, seconds, ctx)


fl.pipeline("two_steps", [first, second])


async def _run(record: str, seconds: float, ctx: Context) -> None:
    _append(Path(record), f"began {ctx.task_id} {ctx.fence}\n")
    try:
        await asyncio.sleep(seconds)
    finally:
        _append(Path(record), f"ended {ctx.task_id} {ctx.fence}\n")
