"""The session of a client with the handler of its interactive task."""

from typing import Any

from fairlead.client.resumable import Resumable
from fairlead.client.sessions import Session
from fairlead.live.messages import Message


class TaskSession:
    """Sends frames, any JSON of up to 64 KiB, and iterates over those that the handler emits.

    The iteration ends with the task; `task.result()` then says how. Waiting for a frame can be cancelled, by
    a timeout for example, and repeated.
    """

    def __init__(self, session: Session, messages: Resumable[Message]) -> None:
        self._messages = messages
        self.send = session.send

    def __aiter__(self) -> "TaskSession":
        return self

    async def __anext__(self) -> Any:
        message = await anext(self._messages)
        if message["type"] != "FRAME":
            raise StopAsyncIteration
        return message["frame"]
