"""A worker in this process, with its heartbeat in a thread."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from fairlead.backend import Backend
from fairlead.cron import Cron
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of
from fairlead.worker.begun import Begun
from fairlead.worker.handler import Handler
from fairlead.worker.heartbeat import HeartbeatThread
from fairlead.worker.options import WorkerOptions
from fairlead.worker.worker import Worker

log = EventLog("fairlead.worker")


@asynccontextmanager
async def running_worker(
    backend: Backend,
    handlers: Mapping[str, Handler],
    crons: Sequence[Cron],
    options: WorkerOptions,
    declare: Callable[[], Awaitable[None]] | None = None,
    *,
    wait: bool = True,
) -> AsyncIterator[Worker]:
    """It works while the block runs, then gives back what it has in hand.

    The block begins when the worker has registered, unless `wait` is false.
    """
    begun = Begun()
    async with HeartbeatThread(backend, begun) as pipe:
        worker = Worker(backend, handlers, crons, options, pipe, begun, declare=declare)
        running = asyncio.create_task(worker.run())
        running.add_done_callback(_say_why)
        running.add_done_callback(lambda _: worker.ended.set())
        ready = asyncio.create_task(worker.ready.wait())
        try:
            if wait:
                await asyncio.wait({ready, running}, return_when=asyncio.FIRST_COMPLETED)
            if ready.done() or not wait:  # else it cannot work as it is, and says why below
                yield worker
        finally:
            ready.cancel()
            worker.drain()
            await running


def _say_why(running: asyncio.Task[None]) -> None:
    """It is raised when the block ends, which may be days later: it is logged now."""
    if not running.cancelled() and (problem := running.exception()):
        log.error("worker_failed", problem=str(problem), traceback=traceback_of(problem))
