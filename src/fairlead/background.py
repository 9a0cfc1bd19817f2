"""Work in the background of a process: if it fails it is logged and started again, never silently gone."""

import asyncio
import contextlib
import math
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from fairlead.clock import monotonic
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between a failure and the next start
SHORT_LIFE = 5.0  # seconds; work that fails sooner after its start fails in a row
POLL_SECONDS = 0.005

#: Is given the name of the work, and whether it fails in a row.
Tell = Callable[[str, bool], None]

Work = Callable[[], Awaitable[object]]

log = EventLog("fairlead.background")


async def keep_running(name: str, work: Work, tell: Tell | None = None) -> NoReturn:
    """Runs `work` until cancelled. Work that ends by itself has failed as well.

    One failure is logged, and the work is started again. From the second in a row `tell` is called, until the
    work has run for a while again.
    """
    in_a_row = 0

    def is_failing(failing: bool) -> None:
        if tell:
            tell(name, failing)

    try:
        while True:
            started = monotonic()
            settled = asyncio.get_running_loop().call_later(SHORT_LIFE, is_failing, False)
            try:
                problem = await _failure_of(work)
            finally:
                settled.cancel()
            in_a_row = in_a_row + 1 if monotonic() - started < SHORT_LIFE else 1
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(in_a_row - 1, 10))
            log.error(
                "background_failed",
                work=name,
                in_a_row=in_a_row,
                problem=f"{type(problem).__name__}: {problem}" if problem else "it ended by itself",
                next_step=f"it is started again in {pause:g} s",
                traceback=traceback_of(problem) if problem else "",
            )
            if in_a_row > 1:
                is_failing(True)
            await asyncio.sleep(pause)
    finally:
        is_failing(False)


@asynccontextmanager
async def in_background(works: Mapping[str, Work], tell: Tell | None = None) -> AsyncIterator[None]:
    """Keeps all of them running, each under its name, until the block ends."""
    running = {asyncio.create_task(keep_running(name, work, tell)) for name, work in works.items()}
    try:
        yield
    finally:
        await cancel_all(*running)


async def done_before(work: Coroutine[Any, Any, object], stop: Coroutine[Any, Any, object]) -> bool:
    """Whether `work` ended before `stop` did; if not, it is cancelled. Raises what the work raises."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop)
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        await cancel_all(working, stopping)


async def within(seconds: float, work: Awaitable[object]) -> bool:
    """Whether `work` ended in this time; if not, it is cancelled."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await work
            return True
    return False


async def until(condition: Callable[[], bool], seconds: float = math.inf) -> bool:
    """Whether it becomes true within this time. It is for what another thread does.

    It polls, because the standard executor takes no more work while the interpreter exits.
    """
    last = monotonic() + seconds
    while not condition():
        if monotonic() > last:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


async def _failure_of(work: Work) -> BaseException | None:
    try:
        await work()
    except asyncio.CancelledError as problem:
        task = asyncio.current_task()
        if task and task.cancelling():
            raise
        return problem  # of something it waited for: nobody has cancelled the work itself
    except Exception as problem:
        return problem
    return None


class TaskSet(set["asyncio.Task[Any]"]):
    """Tasks that nobody waits for: the event loop itself holds none, so they are held here until they end."""

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task


def no_more_threads(problem: RuntimeError) -> bool:
    """Whether the interpreter has begun to end, while an event loop in a daemon thread still runs."""
    return "shutdown" in str(problem)


async def cancel_all(*tasks: asyncio.Future[Any]) -> None:
    """Cancels the tasks and waits until they have ended, however they do."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def in_event_loop() -> bool:
    """Whether this thread runs one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The fast event loop, where there is one."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop
