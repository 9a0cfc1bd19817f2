"""Few handshakes at a time, so that a flood of them delays only other handshakes."""

import asyncio
from collections import OrderedDict
from typing import Protocol

MOST_UNDER_WAY = 8  # in a process; each costs as much as several plain requests


class Handshake(Protocol):
    def start(self) -> None: ...


class HandshakeQueue:
    """First in, first out. Plain requests do not wait here."""

    def __init__(self) -> None:
        self._under_way: set[Handshake] = set()
        self._waiting: OrderedDict[Handshake, None] = OrderedDict()

    def join(self, handshake: Handshake) -> None:
        if len(self._under_way) < MOST_UNDER_WAY:
            self._under_way.add(handshake)
            handshake.start()
        else:
            self._waiting[handshake] = None

    def leave(self, handshake: Handshake) -> None:
        """It was answered, or its client has disconnected, perhaps before its turn."""
        self._waiting.pop(handshake, None)
        if handshake not in self._under_way:
            return
        self._under_way.discard(handshake)
        if self._waiting:
            following, _ = self._waiting.popitem(last=False)
            self._under_way.add(following)
            # not at once: many clients that have disconnected would make one long turn of the event loop
            asyncio.get_running_loop().call_soon(following.start)
