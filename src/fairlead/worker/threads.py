"""Handlers in threads: a plain `def` may block, and can be interrupted between two bytecodes."""

import asyncio
import contextlib
import ctypes
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from fairlead.log.events import EventLog

PAUSE = 0.5  # seconds between two attempts to start a thread

log = EventLog("fairlead.worker")


class Interrupted(BaseException):
    """Raised inside a handler's thread: its task was cancelled, timed out, or is no longer ours."""


class ThreadCall:
    """One call of a function in some thread."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[Any] = self._loop.create_future()
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._too_late = False  # interrupted before a thread took it up

    def interrupt(self) -> None:
        """Takes effect when the thread runs Python again: a call into C is not broken off."""
        with self._lock:
            if self._thread is None:
                self._too_late = True
            else:
                raise_in(self._thread)

    def run(self) -> None:
        """In the thread."""
        result, problem = None, None
        try:
            with self._lock:
                if self._too_late:
                    raise Interrupted
                self._thread = threading.get_ident()
            try:
                result = self._function()
            finally:
                # from here on no interrupt can be sent; one on its way arrives before the next line but one
                with self._lock:
                    self._thread = None
        except BaseException as raised:
            problem = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            self._loop.call_soon_threadsafe(self._set, result, problem)

    def _set(self, result: Any, problem: BaseException | None) -> None:
        if self.result.cancelled():
            return
        if isinstance(problem, Interrupted | SystemExit | KeyboardInterrupt | StopIteration):
            self.result.set_exception(RaisedInThread(problem))  # a future cannot carry these
        elif problem is not None:
            self.result.set_exception(problem)
        else:
            self.result.set_result(result)


class RaisedInThread(Exception):
    """Carries what the event loop would take for its own: SystemExit and the like."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Threads:
    """As many threads as are needed at once, kept for the next call.

    Daemons, unlike those of the standard executor: a handler that never ends cannot keep the process alive.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[ThreadCall | None] = SimpleQueue()
        self._count = 0
        self._busy = 0

    async def start(self, function: Callable[[], Any]) -> ThreadCall:
        """Sooner or later: no task is charged with a system that has no room for another thread."""
        self._busy += 1
        try:
            while self._busy > self._count and not self._add_thread():
                # at the latest when another call has ended there is a thread for this one
                await asyncio.sleep(PAUSE)
        except BaseException:
            self._busy -= 1
            raise
        call = ThreadCall(function)
        self._calls.put(call)
        return call

    def _add_thread(self) -> bool:
        name = f"fairlead-{self._count + 1}"
        try:
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except RuntimeError as problem:
            log.error("thread_not_started", problem=str(problem), next_try_seconds=PAUSE)
            return False
        self._count += 1
        return True

    def done(self) -> None:
        """A call that was started has ended."""
        self._busy -= 1

    def close(self) -> None:
        for _ in range(self._count):
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()


def raise_in(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Interrupted))
