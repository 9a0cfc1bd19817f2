"""Handlers in processes of their own: killable, for CPU work; a handler that dies takes no other with it."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import msgspec

from fairlead.log.events import EventLog
from fairlead.model.blob import BlobRef, LocalFile
from fairlead.model.reports import Frame
from fairlead.model.task import Task
from fairlead.worker.child_process import start_child
from fairlead.worker.context import Emitted, HandlerMessage
from fairlead.worker.files import Granted, Wish
from fairlead.worker.frames import ClientFrames
from fairlead.worker.handler import Handler
from fairlead.worker.outcome import FailedElsewhere, HandlerDied
from fairlead.worker.pipe import MessagePipe

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between two attempts to start a process
GOODBYE_SECONDS = 0.2  # to read what a dead process still said
STOP_SECONDS = 2.0  # between asking a handler to stop and killing its process

log = EventLog("fairlead.worker")


class Process:
    """One process that runs one handler at a time."""

    def __init__(self, process: asyncio.subprocess.Process, pipe: MessagePipe) -> None:
        self._process = process
        self._pipe = pipe
        self._killing: asyncio.TimerHandle | None = None
        self._killed = False
        self._watching = asyncio.create_task(self._watch())

    @classmethod
    async def start(cls) -> "Process":
        path = os.pathsep.join(path for path in sys.path if path)
        process, pipe = await start_child(
            "fairlead.app.handler_process",
            stdin=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        return cls(process, pipe)

    @property
    def alive(self) -> bool:
        # what was just killed may not have been reaped: its end of the pipe is closed before
        return self._process.returncode is None and not self._killed and not self._pipe.ended

    def begin(self, task: Task, handler: Handler, traceparent: str | None) -> None:
        """A call; what `inform` sends from now on is about it."""
        self._pipe.send({"task": task, "source": handler.source, "traceparent": traceparent})

    async def result(
        self,
        said: Callable[[HandlerMessage], None],
        has_room: Callable[[], bool],
        grant: Callable[[Wish], Awaitable[LocalFile | BlobRef]],
        frames: ClientFrames | None = None,
    ) -> Any:
        """Of the call that began."""
        fetching: Future[list[Frame]] | None = None
        try:
            async for message in self._pipe:
                if "said" in message:
                    said(HandlerMessage(**message["said"]))
                    await Emitted(has_room)  # meanwhile the pipe fills up, and the handler waits
                elif "frames_after" in message and frames:
                    if fetching:
                        fetching.cancel()
                    fetching = frames.fetch(message["frames_after"])
                    fetching.add_done_callback(self._send_frames)
                elif "wish" in message:
                    wish = msgspec.convert(message["wish"], Wish)
                    granted = await Granted.of(message["number"], partial(grant, wish))
                    self._pipe.send({"granted": granted})
                elif "failed" in message:
                    raise FailedElsewhere(message["failed"])
                else:
                    return message["result"]
        finally:
            if fetching:  # what it brings must not reach the next call
                fetching.cancel()
        raise HandlerDied(f"the process that ran it {_ending(await self._process.wait())}")

    def _send_frames(self, fetched: "Future[list[Frame]]") -> None:
        if not fetched.cancelled():
            self._pipe.send({"frames": fetched.result()})

    def halt(self) -> None:
        """Asks the handler to stop, and kills it if it does not, or the second time."""
        if self._killing:
            self._kill()
            return
        self._pipe.send({"stop": True})
        self._killing = asyncio.get_running_loop().call_later(STOP_SECONDS, self._kill)

    def inform(self, deadline_ms: int, is_over: bool) -> None:
        """The deadline of its handler, and whether it has passed."""
        self._pipe.send({"deadline": deadline_ms, "is_over": is_over})

    def rest(self) -> None:
        """The call is over."""
        if self._killing:  # it was asked to stop; whether it has or not, it gets no other
            self._killing.cancel()
            self._kill()

    async def close(self) -> None:
        self._kill()
        await self._process.wait()
        self._watching.cancel()
        await self._pipe.close()

    async def _watch(self) -> None:
        """The pipe ends with the process; but a process that it has forked may hold it open."""
        await self._process.wait()
        await asyncio.sleep(GOODBYE_SECONDS)
        self._pipe.cut()

    def _kill(self) -> None:
        self._killed = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()


class Processes:
    """As many processes as are needed at once, kept for the next call while they live."""

    def __init__(self) -> None:
        self._all: set[Process] = set()
        self._resting: list[Process] = []

    @contextlib.asynccontextmanager
    async def borrowed(self) -> AsyncIterator[Process]:
        process = await self._next()
        try:
            yield process
        except asyncio.CancelledError:
            process.halt()
            raise
        finally:
            process.rest()
            self._resting.append(process)

    async def _next(self) -> Process:
        while self._resting:
            process = self._resting.pop()
            if process.alive:
                return process
            self._all.discard(process)
            await process.close()
        process = await self._started()
        self._all.add(process)
        return process

    async def _started(self) -> Process:
        """Sooner or later: no task is charged with a system that has no room for another process."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await Process.start()
            except (OSError, RuntimeError) as problem:
                log.error("handler_process_not_started", problem=str(problem), next_try_seconds=pause)
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    async def close(self) -> None:
        for process in self._all:
            await process.close()


def _ending(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
