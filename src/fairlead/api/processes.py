"""Several server processes on one socket; one that dies is replaced."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Sequence

from fairlead.clock import monotonic

SHORT_LIFE = 5.0  # seconds; who dies younger is replaced more slowly each time
LONGEST_PAUSE = 5.0

log = logging.getLogger("fairlead.api")


async def keep_processes(
    command: Sequence[str], opened: socket.socket, count: int, stop: asyncio.Event
) -> None:
    """Until told to stop, which they are told too."""
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(_keep(command, opened, stop))


async def _keep(command: Sequence[str], opened: socket.socket, stop: asyncio.Event) -> None:
    """One place among the processes."""
    pause = 0.0
    while not stop.is_set():
        born = monotonic()
        code = await _one_life(command, opened, stop)
        if stop.is_set():
            break
        log.error("server_died exit_code=%d", code)
        pause = 0.0 if monotonic() - born > SHORT_LIFE else min(LONGEST_PAUSE, pause * 2 + 0.1)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await stop.wait()


async def _one_life(command: Sequence[str], opened: socket.socket, stop: asyncio.Event) -> int:
    child = await asyncio.create_subprocess_exec(*command, pass_fds=[opened.fileno()])
    ended = asyncio.create_task(child.wait())
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)
        return await ended
    finally:
        stopping.cancel()
