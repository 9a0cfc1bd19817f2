"""Blobs for handlers, wherever they run: a handler asks, and the process that has the backend answers."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from fairlead.backend import Backend
from fairlead.background import in_event_loop
from fairlead.blobs.local import PartialFile
from fairlead.client.problems import error_of
from fairlead.errors import FairleadError, InvalidInput
from fairlead.model.blob import BlobRef, LocalFile
from fairlead.model.task import Task

LOOK_SECONDS = 0.01  # a thread that waits can be interrupted between two looks

T = TypeVar("T")


class Wish(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fetch the blob of this reference; without one, upload the source."""

    ref: BlobRef | None = None
    path: str = ""
    content: bytes = b""  # if there is no path
    name: str | None = None
    content_type: str | None = None


#: Answers with a LocalFile, or a BlobRef of what was uploaded.
Ask = Callable[[Wish], "Future[LocalFile | BlobRef]"]


async def granted(backend: Backend, task: Task, wish: Wish) -> LocalFile | BlobRef:
    if wish.ref:
        return await backend.blobs.fetch(wish.ref, task=task)
    source = Path(wish.path) if wish.path else wish.content
    return await backend.blobs.put(source, name=wish.name, content_type=wish.content_type, task=task)


def asking(backend: Backend, task: Task) -> Ask:
    """For handlers in this process, in any of its threads."""
    loop = asyncio.get_running_loop()
    return lambda wish: asyncio.run_coroutine_threadsafe(granted(backend, task, wish), loop)


def nobody(_: Wish) -> "Future[LocalFile | BlobRef]":
    raise FairleadError("There are no blobs here: run it by a worker, as in `fairlead.testing.private`.")


class Answer(Generic[T]):
    """`await` it, or in a thread call `wait()`."""

    def __init__(self, future: "Future[T]") -> None:
        self._future = future

    def __await__(self) -> Generator[object, None, T]:
        return asyncio.wrap_future(self._future).__await__()

    def wait(self) -> T:
        try:
            while not self._future.done():
                time.sleep(LOOK_SECONDS)
        except BaseException:
            self._future.cancel()
            raise
        return self._future.result()


class OpenedBlob:
    """`async with ctx.open(ref) as file:`, or `with` in a thread or a process."""

    def __init__(self, fetch: Callable[[], "Future[LocalFile]"]) -> None:
        self._fetch = fetch
        self._file: BinaryIO | None = None

    def __enter__(self) -> BinaryIO:
        if in_event_loop():
            raise FairleadError("This would block the event loop: use `async with ctx.open(...)` here.")
        return self._open(Answer(self._fetch()).wait())

    async def __aenter__(self) -> BinaryIO:
        return self._open(await Answer(self._fetch()))

    def _open(self, local: LocalFile) -> BinaryIO:
        self._file = opened(local)
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._file:
            self._file.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, problem, trace)


def opened(local: LocalFile) -> BinaryIO:
    """A temporary file loses its name at once, so that nothing is left of it, whatever happens."""
    file = local.path.open("rb")
    if local.is_temporary and os.name == "posix":
        local.path.unlink(missing_ok=True)
    return file


class Granted(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a wish of a handler in another process."""

    number: int
    path: str = ""
    is_temporary: bool = False
    ref: BlobRef | None = None
    problem: dict[str, Any] | None = None  # as a gateway describes it

    @classmethod
    async def of(cls, number: int, grant: Callable[[], Awaitable[LocalFile | BlobRef]]) -> "Granted":
        """Whatever goes wrong is for the handler."""
        try:
            answer = await grant()
        except Exception as problem:
            known = problem if isinstance(problem, FairleadError) else FairleadError(str(problem))
            facts = {"status": known.http_status, "code": known.code, "detail": known.message}
            if isinstance(known, InvalidInput):
                facts["errors"] = [{"field": known.field, "message": known.reason}]
            return cls(number, problem=facts)
        if isinstance(answer, BlobRef):
            return cls(number, ref=answer)
        return cls(number, path=str(answer.path), is_temporary=answer.is_temporary)

    def settle(self, future: "Future[LocalFile | BlobRef]") -> None:
        if self.problem:
            future.set_exception(error_of(self.problem))
        else:
            future.set_result(self.ref or LocalFile(Path(self.path), self.is_temporary))


class Wishes:
    """Of a handler in a process of its own: `send` leads to the worker."""

    def __init__(self, send: Callable[[object], None]) -> None:
        self._send = send
        self._numbers = count(1)
        self._waiting: dict[int, Future[LocalFile | BlobRef]] = {}

    def ask(self, wish: Wish) -> "Future[LocalFile | BlobRef]":
        future: Future[LocalFile | BlobRef] = Future()
        if wish.content:  # it may be too large for the pipe
            partial = PartialFile(None)
            partial.write(wish.content)
            partial.close()
            future.add_done_callback(lambda _: partial.discard())
            wish = replace(wish, content=b"", path=str(partial.path))
        number = next(self._numbers)
        self._waiting[number] = future
        self._send({"wish": wish, "number": number})
        return future

    def settle(self, granted: Granted) -> None:
        future = self._waiting.pop(granted.number)
        if future.set_running_or_notify_cancel():
            granted.settle(future)
