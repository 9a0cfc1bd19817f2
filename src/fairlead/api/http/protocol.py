"""What connections share, whichever protocol they speak: bounded reads, and an end that clients can read."""

import asyncio
from abc import ABC, abstractmethod

from fairlead.api.http.manager import ConnectionManager
from fairlead.api.http.outlet import Outlet

MOST_DISCARDED = 4 * 1024 * 1024  # bytes that are read after the last answer, so that it arrives


class BoundedProtocol(ABC, asyncio.BufferedProtocol):
    """Reads no more at once than a connection should keep while it cannot process it."""

    outlet: Outlet

    def __init__(self, manager: ConnectionManager) -> None:
        self._manager = manager
        self._unread = b""  # what has been received, from `_at` on
        self._at = 0
        self._is_reading = True
        self._again: asyncio.Handle | None = None  # when reading continues
        self._discarded: int | None = None  # bytes, once whatever arrives is of no use

    # What the transport calls

    def get_buffer(self, sizehint: int) -> memoryview:
        """All connections share it: the loop calls `buffer_updated` right after it has read into it."""
        return self._manager.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._manager.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if self._discarded is not None:
            self._discarded += len(data)
            if self._discarded > MOST_DISCARDED:
                self.close()
            return
        self._unread = self._unread[self._at :] + data if self._unread else data
        self._at = 0
        self._advance()

    def pause_writing(self) -> None:
        self.outlet.pause(self._manager.now())

    def resume_writing(self) -> None:
        self.outlet.resume()

    # What the manager calls

    @abstractmethod
    def close(self) -> None:
        """Once everything is sent, for which the client has some time."""

    def abort(self) -> None:
        self.outlet.transport.abort()

    # Reading

    @abstractmethod
    def _advance(self) -> None:
        """Reads as much as can be processed now. While something is left nothing more is received."""

    def _continue(self) -> None:
        self._again = None
        self._advance()

    def _set_reading(self, wanted: bool) -> None:
        transport = self.outlet.transport
        if wanted != self._is_reading and not transport.is_closing():
            self._is_reading = wanted
            if wanted:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def _discard_rest(self) -> None:
        """Closing now would reset the connection, because not all of it has been read, and the reset could
        overtake what was sent."""
        self._unread, self._at = b"", 0
        self._discarded = 0
        if self.outlet.is_open:
            self.outlet.transport.write_eof()
            self._set_reading(True)
