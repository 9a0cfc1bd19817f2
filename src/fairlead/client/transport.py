"""One request to a gateway, bounded in time and size, and its answer as a value or an error."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from fairlead import __version__, tracing
from fairlead.client.problems import AWAY, error_of
from fairlead.errors import FairleadError, InvalidSettings, StoreUnavailable
from fairlead.settings.processes import DEFAULT_NAMESPACE
from fairlead.shapes.base import Json
from fairlead.shapes.cron import CronsAnswer
from fairlead.shapes.limit import LimitsAnswer
from fairlead.shapes.task_type import TaskTypesAnswer
from fairlead.shapes.worker import WorkersAnswer
from fairlead.timeouts import LenientTimeout

ANSWER_WITHIN = 10.0  # seconds; a gateway whose store is away says so within two
BYTES_PER_SECOND = 1 << 20  # of a large body, which gets more time
SLOW_BYTES_PER_SECOND = 32 << 10  # of a file; the gateway ends slower uploads
CONNECT_WITHIN = 3.0
MOST_ANSWER = 64 * 1024 * 1024  # bytes
CHECK = "check that the URL is of a gateway of this version"
ATTEMPTS = 3  # of a call that may be repeated
PAUSE = 0.1  # seconds after the first of them, then longer

A = TypeVar("A")
P = TypeVar("P", LimitsAnswer, WorkersAnswer, CronsAnswer, TaskTypesAnswer)
Stream = AbstractAsyncContextManager[httpx.Response]
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


def path(*parts: str) -> str:
    """`path("api", "v1", "tasks", task_id)`"""
    return "/" + "/".join(_segment(part) for part in parts)


def _segment(part: str) -> str:
    if part in (".", ".."):  # else it would lead to another path
        return part.replace(".", "%2E")
    return quote(part, safe=":", errors="replace")


class HttpTransport:
    """Asks one gateway. Nothing is sent before the first call."""

    def __init__(self, url: str, key: str | None = None, namespace: str = DEFAULT_NAMESPACE) -> None:
        self.url = url.rstrip("/")
        headers = {"user-agent": f"fairlead/{__version__}"}
        if key:
            headers["authorization"] = f"Bearer {checked_key(key)}"
        if namespace != DEFAULT_NAMESPACE:  # otherwise the gateway chooses it
            headers["fairlead-namespace"] = namespace
        # Each call is timed as a whole: a server that sends a byte now and then must not hold it up.
        self.http = httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(None, connect=CONNECT_WITHIN),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            follow_redirects=False,
            trust_env=False,
        )

    async def get(self, kind: type[A], address: str, **query: Any) -> A:
        return await self.ask(kind, "GET", address, query=query, repeat=True)

    async def pages(self, kind: type[P], address: str, **query: Any) -> AsyncIterator[P]:
        """All pages of a list."""
        cursor: str | None = ""
        while cursor is not None:
            page = await self.get(kind, address, cursor=cursor, **query)
            yield page
            cursor = page.next_cursor

    async def post(
        self, kind: type[A], address: str, body: Any = None, *, repeat: bool = False, **bounds: Any
    ) -> A:
        return await self.ask(kind, "POST", address, body, repeat=repeat, **bounds)

    async def ask(
        self,
        kind: type[A],
        method: str,
        address: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        repeat: bool = False,
        within: float = ANSWER_WITHIN,
        most: int = MOST_ANSWER,
    ) -> A:
        """The answer, which is JSON of this kind.

        `repeat`: repeating the request changes nothing, so it is sent again if no answer came.
        """
        content = None if body is None else encode(body)
        headers = {} if content is None else {"content-type": "application/json"}
        if traceparent := tracing.current():
            headers["traceparent"] = traceparent
        asked = _given(query or {})
        within += len(content or b"") / BYTES_PER_SECOND
        stream = partial(self.http.stream, method, address, content=content, headers=headers, params=asked)
        return await self._answer(kind, stream, within=within, most=most, repeat=repeat)

    async def upload(
        self,
        kind: type[A],
        address: str,
        content: Callable[[], AsyncIterator[bytes]],
        size: int,
        **query: Any,
    ) -> A:
        """Sends a body of this size by PUT, again if no answer came."""
        headers = {"content-type": "application/octet-stream", "content-length": str(size)}
        asked, within = _given(query), ANSWER_WITHIN + size / SLOW_BYTES_PER_SECOND

        def stream() -> Stream:
            return self.http.stream("PUT", address, content=content(), headers=headers, params=asked)

        return await self._answer(kind, stream, within=within, most=MOST_ANSWER, repeat=True)

    @asynccontextmanager
    async def download(self, address: str, **query: Any) -> AsyncIterator[httpx.Response]:
        """An answer of any length, to be read piece by piece."""
        try:
            async with self.http.stream(
                "GET", address, params=_given(query), timeout=ANSWER_WITHIN
            ) as answer:
                if answer.status_code != 200:
                    await self.refuse(answer)
                yield answer
        except httpx.TransportError as problem:
            raise self._no_answer(problem) from problem

    async def _answer(
        self, kind: type[A], stream: Callable[[], Stream], *, within: float, most: int, repeat: bool
    ) -> A:
        for number in range(1, ATTEMPTS + 1):
            try:
                with LenientTimeout(within):
                    async with stream() as answer:
                        return self._read(kind, answer, await read_capped(answer, most))
            except (httpx.TransportError, TimeoutError) as problem:
                if not repeat or number == ATTEMPTS or isinstance(problem, TimeoutError):
                    raise self._no_answer(problem) from problem
            await asyncio.sleep(PAUSE * 4 ** (number - 1))
        raise AssertionError("every attempt returns or raises")

    def _no_answer(self, problem: Exception) -> StoreUnavailable:
        words = str(problem) or type(problem).__name__
        return StoreUnavailable(f"The gateway at {self.url} did not answer ({words}): is it running?")

    async def refuse(self, answer: httpx.Response) -> None:
        """Raises the error of an unexpected answer."""
        self._read(Json, answer, await read_capped(answer, MOST_ANSWER))
        raise InvalidSettings(f"{self.url} answered, but not as a gateway does: check the URL.")

    def _read(self, kind: type[A], answer: httpx.Response, content: bytes) -> A:
        why = ""
        if answer.is_success:
            try:
                return msgspec.json.decode(content, type=kind)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
                why = str(problem)
        value = _value(content)
        if answer.is_success and isinstance(value, dict):
            raise InvalidSettings(f"the answer of {self.url} cannot be read ({why}): {CHECK}")
        if isinstance(value, dict) and "code" in value:
            raise error_of({"status": answer.status_code, **value}, _retry_after(answer))
        if answer.status_code in AWAY:
            raise StoreUnavailable(f"{self.url} answered {answer.status_code}: no gateway is behind it now.")
        raise InvalidSettings(
            f"{self.url} answered {answer.status_code}, and not as a gateway does: check the URL."
        )


class Part:
    """A part of a gateway: what can be done with one kind of thing."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value not in (None, "")}


async def read_capped(answer: httpx.Response, most: int) -> bytes:
    chunks, size = [], 0
    async for chunk in answer.aiter_bytes():
        size += len(chunk)
        if size > most:
            raise FairleadError(f"The answer is larger than {most >> 20} MiB: ask for less at once.")
        chunks.append(chunk)
    return b"".join(chunks)


def _value(content: bytes) -> Any:
    try:
        return decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _retry_after(answer: httpx.Response) -> float | None:
    said = answer.headers.get("retry-after", "")
    return float(said) if said.isdigit() else None


def checked_key(key: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidSettings("not an API key: it is like flk_..., as `fairlead key create` prints it")
    return key
