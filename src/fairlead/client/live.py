"""The events of a task from the event stream of a gateway, as the store names them."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import httpx
import msgspec

from fairlead.checks import check_task_id
from fairlead.client.resumable import Resumable
from fairlead.client.transport import ANSWER_WITHIN, HttpTransport, Part, decode, path
from fairlead.errors import FairleadError, StoreUnavailable
from fairlead.model.event import Event
from fairlead.model.states import State
from fairlead.shapes.base import Json
from fairlead.shapes.task import TaskAnswer
from fairlead.times import read_time

SILENT_SECONDS = 45.0  # after which the connection is lost: the gateway sends a keep-alive every 15
PAUSE = 0.5  # seconds before it connects again
NOTHING_KEPT = 999_999_999  # larger than any number: so the state comes first, and no old output
MOST_MESSAGE = 4 * 1024 * 1024  # bytes; results and chunks are far smaller

NO_CONTENT = 204

#: Messages that end a task, and their acts; its exact state is read from the task itself.
ENDS = {"JOB_COMPLETE": "complete", "JOB_FAILED": "fail", "CANCELLED": "cancel"}


class NothingNew(Exception):
    """What is watched has ended, and all its messages were sent."""


class Live(Part):
    @contextlib.asynccontextmanager
    async def watch(self, task_id: str) -> AsyncIterator[AsyncIterator[Event | None]]:
        """The events of a task from now on.

        `None` comes first, when no event can be missed any more, and after each lost connection: read the
        state then, because events before it are not repeated.
        """
        async with Resumable(self._events(check_task_id(task_id))) as events:
            yield events

    def messages(self, task_id: str) -> AsyncGenerator[Json]:
        """Its messages: output so far, its state, then each change until it has ended."""
        return all_messages_of(self._transport, path("api", "v1", "tasks", check_task_id(task_id), "events"))

    async def _events(self, task_id: str) -> AsyncGenerator[Event | None]:
        while True:
            known: int | None = None
            with contextlib.suppress(httpx.TransportError, TimeoutError, StoreUnavailable):
                address = path("api", "v1", "tasks", task_id, "events")
                stream = messages_of(self._transport, address, NOTHING_KEPT)
                async with contextlib.aclosing(stream) as messages:
                    async for message in messages:
                        if known is None:  # the state when the connection was made: read it now
                            known = message["seq"]
                            yield None
                        elif message["seq"] > known and (event := await self._event(message)):
                            yield event
            if known is not None:
                yield None  # the stream has ended, perhaps because the task has
            await asyncio.sleep(PAUSE)

    async def _event(self, message: Json) -> Event | None:
        kind = message["type"]
        if kind in ENDS:
            address = path("api", "v1", "tasks", message["task_id"])
            task = (await self._transport.get(TaskAnswer, address)).to_value()
            detail = {"code": task.error.code} if task.error else {}
            at = task.completed_at or task.created_at
            return Event(task.task_id, ENDS[kind], None, task.status, at, task.fence, detail, message["seq"])
        return event_of(message)


async def all_messages_of(transport: HttpTransport, address: str) -> AsyncGenerator[Json]:
    """The messages about a task or job until it has ended; after a lost connection they continue."""
    after = 0
    while True:
        with contextlib.suppress(httpx.TransportError, TimeoutError, StoreUnavailable):
            try:
                async with contextlib.aclosing(messages_of(transport, address, after)) as messages:
                    async for message in messages:
                        after = message["seq"]
                        yield message
                        if message["type"] in ENDS:
                            return
            except NothingNew:
                return
        await asyncio.sleep(PAUSE)


async def messages_of(transport: HttpTransport, address: str, after: int) -> AsyncGenerator[Json]:
    """The messages of an event stream until it ends."""
    async with contextlib.AsyncExitStack() as stack:
        async with asyncio.timeout(ANSWER_WITHIN):
            stream = transport.http.stream("GET", address, params={"after": after})
            answer = await stack.enter_async_context(stream)
        if answer.status_code == NO_CONTENT:
            raise NothingNew
        if answer.headers.get("content-type", "").partition(";")[0] != "text/event-stream":
            await transport.refuse(answer)
        pieces, rest = answer.aiter_bytes(), b""
        while True:
            async with asyncio.timeout(SILENT_SECONDS):
                piece = await anext(pieces, None)
            if piece is None:
                return
            *whole, rest = (rest + piece).split(b"\n\n")
            if len(rest) > MOST_MESSAGE:
                raise FairleadError(f"The gateway sent a message of more than {MOST_MESSAGE >> 20} MiB.")
            for text in whole:
                if message := _read(text):
                    yield message


def _read(text: bytes) -> Json | None:
    """The data of one event; None of a keep-alive."""
    data = b"\n".join(line[5:].lstrip() for line in text.split(b"\n") if line.startswith(b"data:"))
    try:
        value = decode(data) if data else None
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) and "seq" in value and "type" in value else None


def event_of(message: Json) -> Event | None:
    """The event of a message that does not end the task; None if it is no act, such as WAITING."""
    after, detail = State(message.get("status", State.EXECUTING)), Json()
    match message["type"]:
        case "QUEUED":
            act = "queue"
        case "STEP_START":
            act, detail = "claim", {"worker": message["worker_id"]}
        case "PROGRESS":
            act, detail = "progress", {name: message[name] for name in ("fraction", "message")}
        case "OUTPUT":
            act, detail = "output", {name: message[name] for name in ("seq", "chunk")}
        case "RETRY":
            delay = round(message["delay_seconds"] * 1000)
            act, detail = "fail", {"code": message["code"], "delay": delay, "retries": message["retries"]}
        case "JOB_PROMOTED":
            act, after = "promote", State.QUEUED
            detail = {name: message[name] for name in ("old", "new")}
        case "EXTENDED":
            act, detail = "extend", {"deadline": read_time("deadline", message["deadline"])}
        case "DOWNGRADED":
            deadline = read_time("deadline", message["deadline"])
            act = "shorten"
            detail = {"tier": message["tier"], "reason": message["reason"], "deadline": deadline}
        case _:
            return None
    at, fence = read_time("at", message["at"]), message.get("fence", 0)
    return Event(message["task_id"], act, None, after, at, fence, detail, message["seq"])
