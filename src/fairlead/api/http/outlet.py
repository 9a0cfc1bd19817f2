"""Writes to a client, bounds how long that may be left unread, and says whether it was received."""

import asyncio
import math
import socket
import struct
import sys

TCP_INFO_BYTES = 216
ACKNOWLEDGED, NOT_SENT, SENT = 120, 144, 200  # offsets in Linux' struct tcp_info


class Outlet:
    """The writing side of one connection, whichever protocol it speaks."""

    __slots__ = ("_due", "_seconds", "_unsent", "_writable", "lost", "paused", "transport")

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        self.transport = transport
        self.paused = False  # too much is unsent
        self.lost = False
        self._seconds = seconds
        self._writable = asyncio.Event()
        self._due = math.inf
        self._unsent = 0

    @property
    def is_open(self) -> bool:
        return not (self.lost or self.transport.is_closing())

    def write(self, *parts: bytes) -> None:
        self.transport.writelines(parts)

    async def drain(self) -> None:
        """Returns when the client has read enough, or has disconnected."""
        while self.paused and not self.lost:
            await self._writable.wait()

    def pause(self, now: float) -> None:
        self.paused = True
        self._writable.clear()
        self._wait(now)

    def resume(self) -> None:
        self.paused = False
        self._due = math.inf
        self._writable.set()

    def lose(self) -> None:
        """Releases pending writes; `paused` still shows whether something was left unread."""
        self.lost = True
        self._due = math.inf
        self._writable.set()

    def is_stuck(self, now: float) -> bool:
        """Whether the client reads nothing. A client that has read some is slow, but not stuck."""
        if now < self._due:
            return False
        if self.transport.get_write_buffer_size() < self._unsent:
            self._wait(now)
            return False
        return True

    def _wait(self, now: float) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._due = now + self._seconds


def has_unacknowledged(transport: asyncio.BaseTransport) -> bool:
    """True: certainly not everything. Systems other than Linux do not say: then it is False."""
    connection = transport.get_extra_info("socket")
    if sys.platform != "linux" or connection is None:
        return False
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    except OSError:  # not TCP, or closed already
        return False
    if len(info) < TCP_INFO_BYTES:  # Linux before 4.19
        return False
    (acknowledged,) = struct.unpack_from("Q", info, ACKNOWLEDGED)
    (not_sent,) = struct.unpack_from("I", info, NOT_SENT)
    sent, sent_again = struct.unpack_from("QQ", info, SENT)
    return bool(not_sent or acknowledged < sent - sent_again)
