"""Tasks that note when they run, in a file that all runs append to."""

import asyncio

from fairlead import Context, Fairlead
from tests.faults.record import noted

fl = Fairlead()


@fl.task
async def held(record: str, limit: str, seconds: float, ctx: Context) -> int:
    with noted(record, limit, ctx.task_id, ctx.fence):
        await asyncio.sleep(seconds)
    return ctx.fence
