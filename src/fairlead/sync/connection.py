"""An event loop in a thread of its own, on which one object of the async API is open."""

import asyncio
import atexit
import contextlib
import copy
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent import futures
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Generic, TypeVar

from fairlead import tracing
from fairlead.background import cancel_all, done_before
from fairlead.errors import FairleadError

A = TypeVar("A", bound=AbstractAsyncContextManager[Any])
R = TypeVar("R")

CLOSED = "Fairlead was closed while this waited: close it when no thread uses it any more."
FORKED = "This was begun before the process was forked, and belongs to the parent: begin it again here."

LOOK_SECONDS = 0.5


def until_one_is_done(*calls: Future[Any]) -> None:
    """Looks now and then: an interrupt by a worker, or by a lost lease, arrives between two looks."""
    while not any(call.done() for call in calls):
        futures.wait(calls, LOOK_SECONDS, futures.FIRST_COMPLETED)


class Connection(Generic[A]):
    """Opened by the first thread that needs it, shared by all of them, closed at exit at the latest.

    A forked child inherits the object but not the thread. It must neither use nor release what the parent's
    loop holds: closing an inherited transport would also remove it from the parent's selector, which they
    share. Nothing releases it, because the frames of a thread that is not there keep their references.
    """

    def __init__(self, app: A) -> None:
        self.app = copy.copy(app)  # the same declarations, connected by itself
        self._process = os.getpid()
        self._lock = threading.RLock()  # a signal handler may use it while its thread has the lock
        self._thread = threading.Thread(target=self._serve, name="fairlead-sync", daemon=True)
        # with a factory, because else it would become the event loop of the thread that opens the connection
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened: Future[None] = Future()
        self._closing = asyncio.Event()
        self.closed_by: int | None = None  # a thread
        self._at_exit = False
        self._calls: dict[Future[Any], asyncio.Task[Any]] = {}
        self._failure: BaseException | None = None  # of closing

    @property
    def is_ours(self) -> bool:
        return self._process == os.getpid()

    def open(self) -> None:
        with self._lock:
            if self._loop is None:
                loop = self._runner.get_loop()
                self._thread.start()
                self._loop = loop
                atexit.register(self.close, at_exit=True)
        until_one_is_done(self._opened)
        self._opened.result()

    def close(self, *, at_exit: bool = False) -> None:
        """Ends all calls, disconnects and ends the thread. Raises what went wrong meanwhile."""
        if not self.is_ours or self._loop is None:
            return
        with self._lock:
            self.closed_by = threading.get_ident()
            self._at_exit = at_exit
            self.call_soon(self._closing.set)
        self._thread.join()
        atexit.unregister(self.close)
        if self._failure:
            raise self._failure

    def run(self, function: Callable[..., Coroutine[Any, Any, R]], *args: Any) -> R:
        """The result of a coroutine function, called on the loop."""
        return self.wait(self.start(function, *args))

    def start(self, function: Callable[..., Coroutine[Any, Any, R]], *args: Any) -> Future[R]:
        """A future that ends when the call has ended, also if it is cancelled."""
        if not self.is_ours:
            raise FairleadError(FORKED)
        call: Future[R] = Future()
        with self._lock:  # a call that begins later than the closing would never end
            if self.closed_by is not None:
                raise FairleadError(CLOSED)
            self.call_soon(partial(self._begin, call, tracing.current(), function, *args))
        return call

    def wait(self, call: Future[R]) -> R:
        """Its result. When the wait is interrupted, by Ctrl-C for one, the call is stopped."""
        try:
            until_one_is_done(call)
            return call.result()
        except BaseException:
            self.stop(call)
            raise

    def stop(self, call: Future[Any]) -> None:
        """Cancels it, and waits until it has cleaned up."""
        self.cancel(call)
        futures.wait([call])

    def cancel(self, call: Future[Any]) -> None:
        self.call_soon(lambda: call in self._calls and self._calls[call].cancel())

    def call_soon(self, function: Callable[[], object]) -> None:
        assert self._loop
        if self.is_ours:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(function)

    def _begin(
        self,
        call: Future[R],
        traceparent: str | None,
        function: Callable[..., Coroutine[Any, Any, R]],
        *args: Any,
    ) -> None:
        with tracing.continuing(traceparent):  # the span of the thread that calls
            self._calls[call] = asyncio.ensure_future(function(*args))
        self._calls[call].add_done_callback(partial(self._end, call))

    def _end(self, call: Future[R], task: asyncio.Task[R]) -> None:
        del self._calls[call]
        if task.cancelled():
            if not self._at_exit:  # else only daemon threads can wait: they end with the interpreter
                call.set_exception(FairleadError(CLOSED))
        elif problem := task.exception():
            call.set_exception(problem)
        else:
            call.set_result(task.result())

    def _serve(self) -> None:
        try:
            with self._runner:
                self._runner.run(self._main())
        except BaseException as problem:
            if self._opened.done():
                self._failure = problem
            else:
                self._opened.set_exception(problem)

    async def _main(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            if not await done_before(stack.enter_async_context(self.app), self._closing.wait()):
                raise FairleadError(CLOSED)
            self._opened.set_result(None)
            await self._closing.wait()
            await cancel_all(*self._calls.values())
