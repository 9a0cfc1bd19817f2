"""A request, its body and its query. Everything is bounded before it is parsed.

Bodies of many items are read a few items at a time, so that other requests are served in between.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope

from fairlead.api.browsers import secret_in
from fairlead.api.gateway import Gateway
from fairlead.api.problems import BodyTooLarge, InvalidBody, MalformedJson, NotJson
from fairlead.checks import MOST_BYTES, TRACEPARENT
from fairlead.errors import UnknownJob, UnknownTask
from fairlead.model.batch import bounded_parts
from fairlead.model.job import Job
from fairlead.model.key import Identity
from fairlead.model.task import Task
from fairlead.model.tenants import ids_meant
from fairlead.store.store import Store

MOST_BODY = MOST_BYTES  # 256 KiB
BATCH_BODY = 16 * 1024 * 1024  # a thousand tasks, or results
# Bytes of items that are decoded, checked and packed in one go: usually a few ms, at worst less than 50.
AT_ONCE = 256 * 1024
PIECE = 256 * 1024  # of a body that is read piece by piece
MOST_ITEM = MOST_BODY + 128 * 1024  # parameters, or a result, and the fields beside them
WHERE = re.compile(r"(?P<what>.*) - at (?:`key` in )?`\$?(?P<path>.*)`$", re.S)
FIELD = re.compile(r"(?:unknown|required) field `([^`]*)`")

B = TypeVar("B")
T = TypeVar("T", Task, Job)


@dataclass(slots=True)
class Request:
    gateway: Gateway
    caller: Identity
    path: dict[str, str]
    headers: dict[str, str]
    receive: Receive
    address: str = ""  # of the peer
    status: int | None = None  # of the answer; None: that of the route
    more_time: Callable[[], None] = lambda: None  # for the rest of the body
    answer_headers: list[tuple[bytes, bytes]] = field(default_factory=list)  # besides those of every answer
    on_lost: Callable[[], None] | None = None  # called when the client has certainly not received the answer

    @property
    def store(self) -> Store:
        return self.gateway.store

    @property
    def traceparent(self) -> str | None:
        """The span of the caller."""
        given = self.headers.get("traceparent", "")
        return given if TRACEPARENT.fullmatch(given) else None

    @property
    def trace_id(self) -> str | None:
        """Of the trace that the caller continues."""
        given = self.traceparent
        return given.split("-")[1] if given else None

    @property
    def session(self) -> str | None:
        """The secret of the browser's session, which replaces the key."""
        if self.caller.key_id is None or "authorization" in self.headers:
            return None
        return secret_in(self.headers)

    async def pieces(self) -> AsyncIterator[bytes]:
        """A body of any length. Each piece has as much time to arrive as the whole of another body."""
        piece, more = bytearray(), True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            piece += message.get("body", b"")
            more = message.get("more_body", False)
            if len(piece) >= PIECE or not more:
                self.more_time()
                yield bytes(piece)
                piece.clear()

    async def gone(self) -> None:
        """Returns when the client has disconnected; its body must have been read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def own_task(self, task_id: str) -> Task:
        """A task of the caller's tenant; one of another tenant counts as unknown."""
        return await self._own(task_id, self.store.get, UnknownTask)

    async def own_job(self, job_id: str) -> Job:
        """A job of the caller's tenant; one of another tenant counts as unknown."""
        return await self._own(job_id, self.store.jobs.get, UnknownJob)

    async def _own(
        self, given: str, get: Callable[[str], Awaitable[T]], unknown: type[UnknownTask | UnknownJob]
    ) -> T:
        for known in ids_meant(self.caller.tenant, given):
            with contextlib.suppress(unknown):
                found = await get(known)
                if self.caller.tenant in (None, found.tenant):
                    return found
        raise unknown()

    async def audit(self, act: str, subject: str, before: Any, after: Any) -> None:
        """Records what an admin did; the header X-Reason, in UTF-8, may say why."""
        reason = self.headers.get("x-reason", "").encode("latin-1").decode(errors="replace")
        await self.store.audit.record(self.caller.name, act, subject, before, after, reason)


def headers_of(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def address_of(scope: Scope) -> str:
    """The address of the peer, from the socket: a header could contain anything."""
    client = scope.get("client")
    return client[0] if client else ""


def expected_size(headers: dict[str, str], most: int) -> int:
    """Bytes of the body: its declared length, or the most that is accepted."""
    length = headers.get("content-length", "")
    if length.isdigit():
        return min(int(length), most)
    return most if "transfer-encoding" in headers else 0


def declared_size(headers: dict[str, str]) -> int | None:
    """Of the body. The protocol has checked the number."""
    return int(headers["content-length"]) if "content-length" in headers else None


async def read_body(headers: dict[str, str], receive: Receive, most: int) -> bytes | bytearray:
    """The whole body. The protocol refuses one that arrives too slowly, as if its client had left."""
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise BodyTooLarge(most)
    body: bytes | bytearray = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk: bytes = message.get("body", b"")
        if len(body) + len(chunk) > most:
            raise BodyTooLarge(most)
        if not message.get("more_body") and not body:
            return chunk
        body = body or bytearray()  # it grows in place: joining large chunks at the end takes long
        body += chunk
        if not message.get("more_body"):
            return body


class ClientGone(Exception):
    """The client has disconnected: nobody is left to be answered."""


def decoded(headers: dict[str, str], body: bytes | bytearray, decoder: msgspec.json.Decoder[B]) -> B:
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise NotJson()
    return read_json(body, decoder, "body", "one value")


def read_json(text: bytes | bytearray | str, decoder: msgspec.json.Decoder[B], what: str, expected: str) -> B:
    """`what` the client has sent, and what is expected there. Raises InvalidBody or MalformedJson."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as problem:
        raise InvalidBody(*where_and_what(problem)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise MalformedJson(f"The {what} is not JSON ({problem}): send {expected}, in UTF-8.") from None


def read_query(raw: bytes, kind: type[B]) -> B:
    given: dict[str, str] = {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict") if raw else []
    except ValueError:
        raise InvalidBody("query", "not percent-encoded UTF-8") from None
    for name, value in pairs:
        if name in given:
            raise InvalidBody(name, "given more than once")
        given[name] = value
    return convert(given, kind, strict=False)


def convert(given: dict[str, Any], kind: type[B], *, strict: bool = True) -> B:
    try:
        return msgspec.convert(given, kind, strict=strict)
    except msgspec.ValidationError as problem:
        raise InvalidBody(*where_and_what(problem)) from None


def where_and_what(problem: msgspec.ValidationError) -> tuple[str, str]:
    """`Expected `int`, got `str` - at `$.tasks[0].priority`` as a field and a sentence."""
    words, path = str(problem), ""
    if match := WHERE.match(words):
        words, path = match["what"], match["path"].lstrip(".")
    if match := FIELD.search(words):
        path = f"{path}.{match[1]}" if path else match[1]
    return path or "body", words


def size_of(item: msgspec.Raw) -> int:
    return len(memoryview(item))


def in_groups(items: Sequence[msgspec.Raw]) -> Iterator[list[msgspec.Raw]]:
    """Items that are read and sent to the store together."""
    return bounded_parts(items, lambda item: (size_of(item),), (AT_ONCE,))


async def taking_turns(groups: Iterable[B]) -> AsyncIterator[B]:
    """The same groups; other tasks of the event loop run before each."""
    for group in groups:
        await asyncio.sleep(0)
        yield group


def decode_item(item: msgspec.Raw, decoder: msgspec.json.Decoder[B], where: str = "") -> B:
    """Raises BodyTooLarge or InvalidBody; `where` is the path of the item in the body."""
    if size_of(item) > MOST_ITEM:
        raise BodyTooLarge(MOST_ITEM)
    try:
        return decoder.decode(item)
    except msgspec.ValidationError as problem:
        name, why = where_and_what(problem)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        name, why = "body", f"is not JSON ({problem}): send it in UTF-8"
    if where:
        name = where if name == "body" else f"{where}.{name}"
    raise InvalidBody(name, why)
