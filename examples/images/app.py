"""Images on one GPU."""

import asyncio

from fairlead import Fairlead

fl = Fairlead("http://127.0.0.1:8000")  # the gateway looks up the plan of each user
fl.limit("gpu", 1)  # one image at a time


@fl.task(limits={"gpu": 1})
async def draw(prompt: str) -> str:
    await asyncio.sleep(0.1)  # here you would use the GPU
    return f"an image of {prompt}"
