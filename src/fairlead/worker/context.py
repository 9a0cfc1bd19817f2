"""What a handler can read and send while it runs."""

import asyncio
import contextlib
import inspect
import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping, MutableMapping
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from fairlead.backend import Backend
from fairlead.checks import check_seconds, check_text, to_json
from fairlead.errors import InvalidInput, NotInteractive
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of
from fairlead.model.blob import BlobRef, LocalFile, as_ref
from fairlead.model.reports import MOST_CHUNK_BYTES
from fairlead.model.task import Task
from fairlead.pipeline.steps import input_of
from fairlead.worker.files import Answer, Ask, OpenedBlob, Wish, nobody
from fairlead.worker.frames import FetchFrames, Frames

#: Of the namespace whose task runs: a worker may serve several.
current_backend: ContextVar[Backend | None] = ContextVar("current_backend", default=None)

ROOM_SECONDS = 0.01  # between two looks whether there is room for more output

log = logging.getLogger("fairlead.model.task")
events = EventLog("fairlead.worker")


@dataclass(frozen=True, slots=True)
class HandlerMessage:
    """One message of a handler, on its way to the store."""

    kind: Literal["progress", "output", "extend"]
    value: Any = None
    message: str = ""
    size: int = 0  # of a chunk of output, in bytes of JSON


class Emitted:
    """A chunk on its way: `await ctx.emit(...)` waits until there is room for the next one."""

    __slots__ = ("_has_room",)

    def __init__(self, has_room: Callable[[], bool]) -> None:
        self._has_room = has_room

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        while not self._has_room():
            await asyncio.sleep(ROOM_SECONDS)

    def wait(self) -> None:
        """The same in a thread."""
        while not self._has_room():
            time.sleep(ROOM_SECONDS)


class Context:
    """Given to a handler that has a parameter of this type. Every method may be called from any thread."""

    def __init__(
        self,
        task: Task,
        say: Callable[[HandlerMessage], None],
        has_room: Callable[[], bool] = lambda: True,
        *,
        may_block: bool = False,
        ask: Ask = nobody,
        loop: asyncio.AbstractEventLoop | None = None,
        fetch_frames: FetchFrames | None = None,
    ) -> None:
        """`has_room`: whether more output is welcome. `may_block`: `emit` itself waits until it is.

        `loop`: where the handler runs; None: in a thread. `fetch_frames`: of an interactive task.
        """
        self.task_id = task.task_id
        self.task_type = task.task_type
        self.attempt = task.attempt
        self.fence = task.fence  #: only grows: let what you write to refuse a smaller one
        self.user_id = task.user_id
        self.job_id = task.job_id
        self.job = input_of(task)  #: what this step is given of its job; None outside of jobs
        self.trace_id = task.trace_id
        self.traceparent = task.traceparent  #: of W3C: the span to which that of the run belongs
        self.timeout_seconds = task.timeout_ms / 1000
        self.tier = task.tier  #: that the run was given when it started; None without tiers
        self.cancelled = False  #: stop as soon as you can: what you return counts only while `truncating`
        self.truncating = False  #: the deadline of the tier has passed: return what you have within a second
        self.deadline_ms = task.deadline or 0
        self._say = say
        self._has_room = has_room
        self._may_block = may_block
        self._ask = ask
        self._loop = loop
        self._callbacks: list[Callable[[datetime], object]] = []
        self._calling_back = threading.Lock()
        self._frames = Frames(fetch_frames) if fetch_frames else None

    @property
    def deadline(self) -> datetime:
        """When it is stopped, by the store's clock."""
        return datetime.fromtimestamp(self.deadline_ms / 1000, UTC)

    @property
    def log(self) -> "TaskLog":
        return TaskLog(log, {"task": self.task_id, "attempt": self.attempt})

    def progress(self, fraction: float, message: str = "") -> None:
        """How far it is, from 0 to 1. The latest counts; call it as often as you like."""
        if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
            raise InvalidInput("fraction", f"{fraction!r} is not a number from 0 to 1")
        check_text("message", message)
        self._say(HandlerMessage("progress", float(fraction), message[:1000]))

    def emit(self, chunk: Any) -> Emitted:
        """Something for those who watch: any JSON of up to 64 KiB. Chunks arrive in this order.

        Up to 1,000 chunks or 4 MiB of a run wait to be sent. In a thread or a process `emit` waits for room.
        In the event loop `await ctx.emit(...)` does; without `await` the oldest chunks are dropped.
        """
        text = to_json("chunk", chunk, MOST_CHUNK_BYTES)
        # a copy: the handler may keep filling what it emitted
        self._say(HandlerMessage("output", msgspec.json.decode(text), size=len(text)))
        emitted = Emitted(self._has_room)
        if self._may_block:
            emitted.wait()
        return emitted

    def open(self, ref: BlobRef | Mapping[str, Any]) -> OpenedBlob:
        """Reads an uploaded file: `async with ctx.open(ref) as file`; a `def` handler uses `with`."""
        wish = Wish(as_ref(ref))
        return OpenedBlob(lambda: cast("Future[LocalFile]", self._ask(wish)))

    def blob(
        self, source: str | Path | bytes, *, name: str | None = None, content_type: str | None = None
    ) -> Answer[BlobRef]:
        """Uploads a file or its content: `await ctx.blob(...)`; a `def` handler uses `ctx.blob(...).wait()`.

        The reference may be (a part of) the result.
        """
        given = {"content": source} if isinstance(source, bytes) else {"path": str(Path(source).absolute())}
        if isinstance(source, str | Path):
            name = name or Path(source).name
        future = self._ask(Wish(name=name, content_type=content_type, **given))
        return Answer(cast("Future[BlobRef]", future))

    def extend(self, seconds: float | None = None) -> None:
        """More time: the deadline becomes now + `seconds` (default: its timeout). Never earlier."""
        check_seconds("seconds", seconds)
        self._say(HandlerMessage("extend", self.timeout_seconds if seconds is None else float(seconds)))

    def on_deadline(self, callback: Callable[[datetime], object]) -> None:
        """Calls `callback(deadline)` when the deadline becomes earlier, and when that of the tier is reached.

        A run whose task names no duration loses time when a waiting task needs its tier. When the deadline is
        reached, `truncating` and `cancelled` are true, and what the handler returns within a second is its
        result. The callback runs in the event loop of an async handler, otherwise in a thread of its own, so
        that it can also stop what the handler waits for.
        """
        if not callable(callback) or inspect.iscoroutinefunction(callback):
            raise InvalidInput("callback", f"{callback!r} is not a plain function")
        self._callbacks.append(callback)
        if self.truncating:  # it was reached before, perhaps while the handler was being started
            self._notify()

    def frames(self) -> Frames:
        """What the client of an interactive task sends, in order: `async for`, or `for` in a plain `def`.

        It waits for the next frame, and ends when the task is cancelled or halted. Answer with `emit`.
        """
        if self._frames is None:
            raise NotInteractive
        return self._frames

    def learn(self, deadline_ms: int, is_over: bool) -> None:
        """For the worker: this is its deadline now; `is_over`: that of its tier has passed."""
        is_news = deadline_ms < self.deadline_ms or (is_over and not self.truncating)
        self.deadline_ms = deadline_ms
        if is_over:
            self.truncating = self.cancelled = True
        if is_news and self._callbacks:
            self._notify()

    def _notify(self) -> None:
        # the handler's loop has ended, or there is no room for a thread
        with contextlib.suppress(RuntimeError):
            if self._loop:
                self._loop.call_soon_threadsafe(self._call_back)
            else:
                threading.Thread(target=self._call_back, name="fairlead-on-deadline", daemon=True).start()

    def _call_back(self) -> None:
        with self._calling_back:  # the deadline may be reached while a thread still says that it moved
            for callback in tuple(self._callbacks):
                try:
                    callback(self.deadline)
                except BaseException as problem:  # SystemExit too: it must not end the worker's loop
                    events.error("on_deadline_failed", task=self.task_id, traceback=traceback_of(problem))


class TaskLog(logging.LoggerAdapter[logging.Logger]):
    """Lines that say which task they are about."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        facts = self.extra or {}
        # a format that keeps facts apart finds them in the record
        kwargs["extra"] = {**(kwargs.get("extra") or {}), "facts": facts}
        return f"{msg} task={facts['task']} attempt={facts['attempt']}", kwargs
