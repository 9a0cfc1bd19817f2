"""A WebSocket: checks its caller, then runs the handler of its route until one side closes it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.types import Message as AsgiMessage
from starlette.types import Receive, Scope, Send

from fairlead.api.endpoint import encode, send_problem
from fairlead.api.gateway import Gateway, check_scope
from fairlead.api.live.connections import FAULT, GONE, NORMAL, Connection
from fairlead.api.problems import Problem, logged_problem
from fairlead.api.request import ClientGone, Request, address_of, headers_of, read_query
from fairlead.api.table import SocketRoute
from fairlead.errors import UnknownJob, UnknownTask
from fairlead.live.messages import Message
from fairlead.model.key import Identity


class Ended(Exception):
    """The connection must be closed with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Socket:
    def __init__(self, connection: Connection, receive: Receive, send: Send) -> None:
        self.connection = connection
        self.accepted = False
        self._receive = receive
        self._send = send

    async def accept(self) -> None:
        await self._send({"type": "websocket.accept"})
        self.accepted = True

    async def send(self, message: Any) -> None:
        """Waits for a slow reader, until the protocol disconnects it."""
        await self._send({"type": "websocket.send", "text": encode(message).decode()})

    async def receive(self) -> str | bytes:
        """The next message of the client. Raises ClientGone, or Ended when the connection is to close."""
        receiving, ended = asyncio.ensure_future(self._receive()), self.connection.ended
        ends: tuple[asyncio.Future[Any], ...] = (receiving, ended)
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not receiving.done():
                receiving.cancel()
        if ended.done():
            raise Ended(ended.result())
        message = receiving.result()
        if message["type"] == "websocket.disconnect":
            raise ClientGone
        text: str | bytes | None = message.get("text")
        return message["bytes"] if text is None else text

    async def send_all(self, messages: AsyncGenerator[Message], what: str = "feed") -> bool:
        """Sends all of them; returns whether they reached their end. An error closes the connection."""
        try:
            async with aclosing(messages):
                async for message in messages:
                    await self.send(message)
            return True
        except OSError:  # the client has disconnected, which `receive` notices, too
            return False
        except Exception as error:
            logged_problem("socket_failed", error, what=what)
            self.connection.end(code_of(error))
            return False

    async def end_with(self, messages: AsyncGenerator[Message], what: str = "feed") -> None:
        """Sends all of them, then ends the connection."""
        if await self.send_all(messages, what):
            self.connection.end(NORMAL)

    async def close(self, code: int) -> None:
        await self._send({"type": "websocket.close", "code": code})


class SocketEndpoint:
    def __init__(self, route: SocketRoute, gateway: Gateway) -> None:
        self._route = route
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        try:
            await self._open(scope, receive, send)
        except (ClientGone, OSError):
            return
        except Exception as error:
            await refuse(send, logged_problem("socket_failed", error, what=self._route.path))

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An error before the socket is accepted is answered as for any other request."""
        headers, query = headers_of(scope), read_query(scope["query_string"], self._route.query)
        gateway = self._gateway.of_request(headers, query.ticket)
        caller = await self._identify(gateway, headers, query.ticket, address_of(scope))
        with gateway.connections.admitted(caller.key_id) as connection:
            request = Request(gateway, caller, scope["path_params"], headers, receive)
            socket = Socket(connection, receive, send)
            try:
                await self._route.handler(request, socket, query)
            except Ended as end:
                await socket.close(end.code)
            except (ClientGone, OSError):
                return
            except Exception as error:
                if not socket.accepted:
                    raise
                logged_problem("socket_failed", error, what=self._route.path)
                await socket.close(code_of(error))

    async def _identify(
        self, gateway: Gateway, headers: dict[str, str], ticket: str | None, address: str
    ) -> Identity:
        gateway.check_caller(headers)
        if ticket is None:
            caller = await gateway.identify(headers, address)
        else:
            caller = await gateway.identify_by_ticket(ticket, address)
        gateway.check_namespace(headers, ticket)
        for scope in self._route.scopes:
            check_scope(caller, scope)
        return caller


async def refuse(send: Send, problem: Problem) -> None:
    """Answers a handshake with a problem; ASGI has separate message types for that."""

    async def send_answer(message: AsgiMessage) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    await send_problem(send_answer, problem)


def code_of(error: Exception) -> int:
    return GONE if isinstance(error, UnknownTask | UnknownJob) else FAULT
