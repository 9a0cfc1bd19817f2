"""The worker of a replay: each task takes as long as its parameters say."""

import asyncio

from fairlead import Fairlead

fl = Fairlead()


@fl.task
async def image(seconds: float) -> None:
    await asyncio.sleep(seconds)


@fl.task
async def chat(seconds: float) -> None:
    await asyncio.sleep(seconds)
