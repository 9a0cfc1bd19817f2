"""The only place that reads this machine's clocks; decisions go by the store's clock, never by this one."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Self

A_MOMENT = 0.05  # seconds: some rounds of the loop


def now_ms() -> int:
    """Wall clock in milliseconds since the epoch: for logs and for people, never to order or expire."""
    return time.time_ns() // 1_000_000


def monotonic() -> float:
    """Seconds that only grow: for measuring how long this process has waited."""
    return time.monotonic()


class patient:
    """`with patient(seconds):` raises TimeoutError when that is over, but only after one more look.

    When this process stood still, an answer may lie there unread: a plain time-out would be due in the same
    round of the loop, and would take what was answered for lost.

    With `heard`, which returns when the other side was heard last, the time begins again whenever it is
    heard: a queue that moves is waited for, however long it is.
    """

    __slots__ = ("_asked", "_due", "_loop", "_over", "_task", "heard", "seconds")

    def __init__(self, seconds: float, heard: Callable[[], float] | None = None) -> None:
        self.seconds = seconds
        self.heard = heard
        self._over = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task
        self._task, self._asked = task, task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.call_later(self.seconds, self._look_again)
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: Any, _: Any) -> None:
        self._due.cancel()
        # if somebody else has cancelled the task too, that counts
        if self._over and self._task.uncancel() <= self._asked and kind is asyncio.CancelledError:
            raise TimeoutError from problem

    def _look_again(self) -> None:
        self._due = self._loop.call_later(A_MOMENT, self._stop)

    def _stop(self) -> None:
        left = self.heard() + self.seconds - monotonic() if self.heard else 0.0
        if left > 0:
            self._due = self._loop.call_later(left, self._look_again)
            return
        self._over = True
        self._task.cancel()
