"""The session of a client with the handler of its interactive task."""

from typing import Any

from fairlead.app import session
from fairlead.sync.connection import Connection

END: Any = object()


class TaskSession:
    """Sends frames, any JSON of up to 64 KiB, and iterates over those that the handler emits."""

    def __init__(self, connection: Connection[Any], theirs: session.TaskSession) -> None:
        self._connection = connection
        self._theirs = theirs

    def send(self, frame: Any) -> None:
        """Waits while the handler has too many unread frames."""
        self._connection.run(self._theirs.send, frame)

    def __iter__(self) -> "TaskSession":
        return self

    def __next__(self) -> Any:
        frame = self._connection.run(self._next)
        if frame is END:
            raise StopIteration
        return frame

    async def _next(self) -> Any:
        return await anext(self._theirs, END)
