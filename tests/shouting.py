"""The other side of an interactive task, in the hands of a test."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fairlead.errors import Fenced, UnknownTask
from fairlead.model.reports import Completed, Grant, Progress
from fairlead.store.store import Store


@contextlib.asynccontextmanager
async def shouting(store: Store) -> AsyncIterator[None]:
    """A worker whose handler answers each frame in capitals, and ends with the frame `bye`."""
    await store.workers.register("w", capacity=1)
    await store.claim("w", idle=True)
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
        for task in (await store.claim("w", idle=True)).tasks:
            grant, last = Grant(task.task_id, task.fence), 0
        if not isinstance(word, str):
            continue
        if word.startswith("frames:"):
            last = await answer(store, grant, last)
        elif word.startswith("cancel:"):
            await store.release("w", grant)
            await store.claim("w", idle=True)  # what it was halted for


async def answer(store: Store, grant: Grant, last: int) -> int:
    """The number of the last frame that it has."""
    try:
        frames = await store.take_frames("w", grant, last)
    except (Fenced, UnknownTask):  # it has ended since, perhaps before it was claimed
        return last
    for frame in frames:
        last = frame.seq
        if frame.frame == "bye":
            await store.complete("w", Completed(grant.id, grant.fence, last))
        else:
            await store.progress("w", Progress(grant.id, grant.fence, chunks=[frame.frame.upper()]))
    return last
