"""Tests wait for a condition, never for a time."""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable

SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.05  # seconds; what takes long is looked at less often
LEAST_PATIENT = 20.0  # s: a wait this long only notices that something hangs
MOST_LONGER = 2.5


def patience(seconds: float) -> float:
    """Longer where more than a few processes share each processor."""
    sharing = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * min(max(1.0, sharing / 3), MOST_LONGER)


async def wait_until(
    condition: Callable[[], object | Awaitable[object]], timeout: float = 40.0, because: str = ""
) -> None:
    """Return once the condition (plain or async) holds; fail with its name when it does not in time."""
    began = time.monotonic()
    while True:
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return
        waited = time.monotonic() - began
        if waited > (patience(timeout) if timeout >= LEAST_PATIENT else timeout):
            what = because or getattr(condition, "__name__", repr(condition))
            raise AssertionError(f"after {waited:.0f} s still not: {what}")
        await asyncio.sleep(min(max(SHORTEST_PAUSE, waited / 10), LONGEST_PAUSE))
