"""Several server processes on one socket; one that dies is replaced."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Sequence

from fairlead.background import within
from fairlead.clock import monotonic
from fairlead.log.events import EventLog
from fairlead.worker.signals import HURRY, StopRequest

SHORT_LIFE = 5.0  # seconds; a process that dies sooner is replaced more slowly each time
LONGEST_PAUSE = 5.0
KILL_SECONDS = 1.5  # after its grace, for a server to end what is under way

log = EventLog("fairlead.api")


async def keep_processes(
    command: Sequence[str], opened: socket.socket, count: int, stop: StopRequest
) -> None:
    """Runs until `stop` is set, and then stops the processes, too."""
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(_keep(command, opened, stop))


async def _keep(command: Sequence[str], opened: socket.socket, stop: StopRequest) -> None:
    """Keeps one process running."""
    pause = 0.0
    while not stop.requested.is_set():
        born = monotonic()
        try:
            code = await _one_life(command, opened, stop)
        except (OSError, RuntimeError) as problem:  # no room for a process, file or thread: perhaps later
            log.error("server_not_started", problem=str(problem))
            code = None
        if stop.requested.is_set():
            break
        if code is not None:
            log.error("server_died", exit_code=code)
        pause = 0.0 if monotonic() - born > SHORT_LIFE else min(LONGEST_PAUSE, pause * 2 + 0.1)
        await within(pause, stop.requested.wait())


async def _one_life(command: Sequence[str], opened: socket.socket, stop: StopRequest) -> int:
    child = await asyncio.create_subprocess_exec(*command, pass_fds=[opened.fileno()])
    stopping = asyncio.create_task(_stop(child.pid, stop))
    try:
        return await child.wait()
    finally:
        stopping.cancel()


async def _stop(pid: int, stop: StopRequest) -> None:
    """Stops one process when `stop` is set, and kills it after its grace, or soon when hurried."""
    await stop.requested.wait()
    _signal(pid, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(stop.grace + KILL_SECONDS):
            await stop.hurried.wait()
            # not SIGTERM again: within a second of the first one the process would take both for one
            _signal(pid, HURRY)
            await asyncio.sleep(KILL_SECONDS)
    log.error("server_did_not_stop", pid=pid)
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, number)
