"""The client's side of an interactive task: on the store itself, or over the socket of a gateway."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from fairlead.backend import Backend
from fairlead.client.job_backend import client_of
from fairlead.live.interactive import StoreSession
from fairlead.live.messages import Message
from fairlead.store.store import Store


class Session(Protocol):
    async def send(self, frame: Any) -> None:
        """Waits while the handler has too many unread frames; AlreadyFinished when the task has ended."""

    def messages(self) -> AsyncGenerator[Message]:
        """A FRAME for each chunk that the handler emits, and then the message of the task's end."""


def session_of(backend: Backend, task_id: str) -> AbstractAsyncContextManager[Session]:
    """Its only client; SessionTaken while there is another. When the block ends, so does the task."""
    if isinstance(backend, Store):
        return StoreSession(backend, task_id)
    from fairlead.client.socket_session import SocketSession  # its library is needed nowhere else

    return SocketSession(client_of(backend), task_id)
