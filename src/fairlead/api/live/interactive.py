"""The socket of an interactive task: frames of its client one way, those of its handler the other."""

import asyncio
from functools import partial
from typing import Any

import msgspec

from fairlead.api.live.connections import TAKEN, Connection
from fairlead.api.live.socket import Socket
from fairlead.api.problems import problem_of
from fairlead.api.request import Request, read_json
from fairlead.background import cancel_all
from fairlead.errors import AlreadyFinished, FairleadError, NotInteractive
from fairlead.live.interactive import StoreSession
from fairlead.shapes.live import WatchQuery
from fairlead.shapes.task import FrameBody

FRAME = msgspec.json.Decoder(FrameBody)


async def interact(request: Request, socket: Socket, query: WatchQuery) -> None:
    """Exchange frames with the handler of an interactive task, which ends with the socket."""
    task = await request.own_task(request.path["id"])
    if not task.interactive:
        raise NotInteractive()
    connection = socket.connection
    taken = partial(connection.end, TAKEN)
    async with StoreSession(request.store, task.task_id, content=msgspec.Raw, on_taken=taken) as session:
        await socket.accept()
        sending = asyncio.create_task(socket.end_with(session.messages(query.after or 0), "session"))
        try:
            while True:
                # one after the other: while the handler has too many unread frames, no other is received
                await _unless_ended(connection, _pass_on(session, socket, await socket.receive()))
        finally:
            await cancel_all(sending)


async def _pass_on(session: StoreSession, socket: Socket, said: str | bytes) -> None:
    try:
        await session.send(read_json(said, FRAME, "message", '{"frame": ...}').frame)
    except AlreadyFinished:
        pass  # its end is on the way to the client
    except FairleadError as error:
        await socket.send({"type": "ERROR", "problem": problem_of(error).body})


async def _unless_ended(connection: Connection, passing: Any) -> None:
    """The task may end, or the server stop, while a frame waits for its handler."""
    sending = asyncio.ensure_future(passing)
    try:
        await asyncio.wait((sending, connection.ended), return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        await cancel_all(sending)
