"""A `with` block inside an `async with` block that another thread runs."""

import asyncio
import threading
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar

from fairlead.sync.connection import Connection, until_one_is_done
from fairlead.worker.threads import Interrupted, raise_in

T = TypeVar("T")


class Held(AbstractContextManager[T], Generic[T]):
    """The outer block is entered and left by one task, which may be cancelled meanwhile: a lease was lost.

    Then the inner block is interrupted: at the next Python instruction, not in a call into C. What ended the
    outer block is raised at the end of the inner one.
    """

    def __init__(self, connection: Connection[Any], outer: AbstractAsyncContextManager[T]) -> None:
        self._connection = connection
        self._outer = outer
        self._entered: Future[T] = Future()
        self._left = asyncio.Event()
        self._lock = threading.Lock()
        self._thread: int | None = None  # that of the inner block, while it runs

    def __enter__(self) -> T:
        self._holding = self._connection.start(self._hold)
        try:
            until_one_is_done(self._entered, self._holding)
        except BaseException:
            self._connection.stop(self._holding)
            raise
        if not self._entered.done():
            self._connection.wait(self._holding)  # raises why it cannot be entered
        value = self._entered.result()
        self._thread = threading.get_ident()
        self._holding.add_done_callback(self._interrupt)
        return value

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, _: TracebackType | None
    ) -> None:
        if not self._connection.is_ours:  # in a forked child: the parent holds it, and leaves it
            return
        try:
            # from here on no interrupt can be sent; one on its way arrives before the next line but one
            with self._lock:
                self._thread = None
        except Interrupted:
            if not self._holding.done():  # it is for another reason: this block is in a handler, say
                raise
        finally:
            self._connection.call_soon(self._left.set)
        self._connection.wait(self._holding)

    async def _hold(self) -> None:
        async with self._outer as value:
            self._entered.set_result(value)
            await self._left.wait()

    def _interrupt(self, _: object) -> None:
        with self._lock:
            # the thread that closes Fairlead inside its own block needs no interrupt, and waits for us
            if self._thread is not None and self._thread != self._connection.closed_by:
                raise_in(self._thread)
