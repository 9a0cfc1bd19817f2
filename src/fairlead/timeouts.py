"""Timeouts for waits on answers that may have arrived while this process was not running."""

import asyncio
from collections.abc import Callable
from typing import Any, Self

from fairlead.clock import monotonic

A_MOMENT = 0.05  # seconds: some rounds of the loop


class LenientTimeout:
    """`with LenientTimeout(seconds):` raises TimeoutError after that time, but only after one more look.

    If this process was suspended, an answer may have arrived unread. A plain timeout would fire in the same
    round of the loop and treat that answer as lost.

    `last_received` returns when the other side last sent something. Then the time starts over, so that
    a queue that moves is waited for however long it is.
    """

    __slots__ = ("_asked", "_due", "_loop", "_over", "_task", "last_received", "seconds")

    def __init__(self, seconds: float, last_received: Callable[[], float] | None = None) -> None:
        self.seconds = seconds
        self.last_received = last_received
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
        left = self.last_received() + self.seconds - monotonic() if self.last_received else 0.0
        if left > 0:
            self._due = self._loop.call_later(left, self._look_again)
            return
        self._over = True
        self._task.cancel()
