"""Tests wait for a condition, never for a time."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

POLL_SECONDS = 0.01


async def wait_until(
    condition: Callable[[], object | Awaitable[object]], timeout: float = 20.0, because: str = ""
) -> None:
    """Return once the condition (plain or async) holds; fail with its name when it does not in time."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return
        if time.monotonic() > deadline:
            what = because or getattr(condition, "__name__", repr(condition))
            raise AssertionError(f"after {timeout:g} s still not: {what}")
        await asyncio.sleep(POLL_SECONDS)
