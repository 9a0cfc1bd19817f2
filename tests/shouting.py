"""The other side of an interactive task, in the hands of a test."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fairlead.errors import Fenced, UnknownTask
from fairlead.model.reports import Completed, Frame, Grant, Progress
from fairlead.store.store import Store


@contextlib.asynccontextmanager
async def shouting(store: Store) -> AsyncIterator[None]:
    """A worker whose handler answers each frame in capitals, and ends with the frame `bye`."""
    await store.workers.register("w", capacity=1)
    serving = asyncio.create_task(shout(store))
    try:
        yield
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


async def shout(store: Store) -> None:
    grant, last = Grant(""), 0
    while True:
        word = await store.workers.wait("w", 5)
        for task in (await store.claim("w")).tasks:
            grant, last = Grant(task.task_id, task.fence), 0
        if isinstance(word, str) and word.startswith("frames:"):
            frames: list[Frame] = []
            # it may have ended since, perhaps before it was claimed
            with contextlib.suppress(Fenced, UnknownTask):
                frames = await store.take_frames("w", grant, last)
            for frame in frames:
                last = frame.seq
                if frame.frame == "bye":
                    await store.complete("w", Completed(grant.id, grant.fence, last))
                else:
                    await store.progress("w", Progress(grant.id, grant.fence, chunks=[frame.frame.upper()]))
        if isinstance(word, str) and word.startswith("cancel:"):
            await store.release("w", grant)
            await store.claim("w")  # what it was halted for
