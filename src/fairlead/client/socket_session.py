"""The client's side of an interactive task over the socket of a gateway."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any, Self

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from fairlead.checks import check_task_id, to_json
from fairlead.client.client import Client
from fairlead.client.live import ENDS, MOST_MESSAGE
from fairlead.client.problems import error_of
from fairlead.client.transport import CONNECT_WITHIN, path
from fairlead.errors import AlreadyFinished, FairleadError, StoreUnavailable
from fairlead.live.messages import Message
from fairlead.model.reports import MOST_CHUNK_BYTES

HANDSHAKE_WITHIN = CONNECT_WITHIN + 10.0


class SocketSession:
    def __init__(self, client: Client, task_id: str) -> None:
        self._client = client
        self._task_id = check_task_id(task_id)
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._socket = await self._connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_over:  # the gateway does it too, but nobody knows when
            with contextlib.suppress(FairleadError):
                await self._client.cancel(self._task_id)
        await self._socket.close()

    async def send(self, frame: Any) -> None:
        text = to_json("frame", frame, MOST_CHUNK_BYTES)
        if self._is_over:
            raise AlreadyFinished()
        try:
            await self._socket.send(f'{{"frame":{text}}}')
        except ConnectionClosed as closed:
            raise self._end_of(closed) from None

    async def messages(self) -> AsyncGenerator[Message]:
        while not self._is_over:
            try:
                message: Message = msgspec.json.decode(await self._socket.recv())
            except ConnectionClosed as closed:
                raise self._end_of(closed) from None
            if message["type"] == "ERROR":
                raise error_of(message["problem"])
            self._is_over = message["type"] in ENDS
            yield message

    async def _connect(self) -> ClientConnection:
        transport = self._client.transport
        address = transport.url.replace("http", "ws", 1) + path("ws", "interactive", self._task_id)
        key = transport.http.headers.get("authorization")
        try:
            return await connect(
                address,
                additional_headers={"authorization": key} if key else None,
                open_timeout=HANDSHAKE_WITHIN,
                max_size=MOST_MESSAGE,
                max_queue=1,  # a reader that is slow holds the gateway up, not this process
                proxy=None,
            )
        except InvalidStatus as refused:
            with contextlib.suppress(msgspec.DecodeError, AttributeError):
                raise error_of(msgspec.json.decode(refused.response.body or b"")) from None
            raise StoreUnavailable(f"The gateway at {transport.url} opened no socket: {refused}") from None
        except (TimeoutError, OSError, InvalidHandshake) as problem:
            words = str(problem) or type(problem).__name__
            raise StoreUnavailable(
                f"The gateway at {transport.url} did not answer ({words}): is it running?"
            ) from problem

    def _end_of(self, closed: ConnectionClosed) -> FairleadError:
        if self._is_over or (closed.rcvd and closed.rcvd.code == 1000):
            return AlreadyFinished()
        return StoreUnavailable(f"The gateway closed the session ({closed}): the task ends with it.")
