"""The only place that reads this machine's clocks; decisions go by the store's clock, never by this one."""

import asyncio
import time
from typing import Any

A_MOMENT = 0.05  # seconds: some rounds of the loop


def now_ms() -> int:
    """Wall clock in milliseconds since the epoch: for logs and for people, never to order or expire."""
    return time.time_ns() // 1_000_000


def monotonic() -> float:
    """Seconds that only grow: for measuring how long this process has waited."""
    return time.monotonic()


class patient:
    """`async with patient(seconds):` raises TimeoutError when that is over, but only after one more look.

    When this process stood still, an answer may lie there unread: a plain time-out would be due in the same
    round of the loop, and would take what was answered for lost.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._timeout.__aenter__()
        self._due = self._loop.call_later(self._seconds, self._look_again)

    async def __aexit__(self, *problem: Any) -> None:
        self._due.cancel()
        await self._timeout.__aexit__(*problem)

    def _look_again(self) -> None:
        self._timeout.reschedule(self._loop.time() + A_MOMENT)
