"""Messages from the frames of a WebSocket, and a bound on the rate of frames."""

import logging
from dataclasses import dataclass

from starlette.types import Message
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

MOST_MESSAGE = 256 * 1024  # bytes
MOST_FRAGMENTS = 1_024  # of one message
TOO_MANY_FRAGMENTS = 1008  # a policy is violated
NOT_UTF_8 = 1007
FRAMES_PER_SECOND = 1_000

quiet = logging.getLogger("fairlead.api.frames")  # of the library: Fairlead logs what a client does wrong
quiet.addHandler(logging.NullHandler())
quiet.propagate = False


class MessageReader:
    """`read(data)`, then see what was received: `messages`, `has_pong`, `goodbye`, `problem`."""

    def __init__(self) -> None:
        # without the handshake
        self.frames = ServerProtocol(state=State.OPEN, max_size=MOST_MESSAGE, logger=quiet)
        self.messages: list[Message] = []
        self.has_pong = False
        self.goodbye: tuple[int, str] | None = None
        self.problem: str | None = None  # what was wrong with a frame; the library has sent a close frame
        self._fragments: list[bytes] = []
        self._is_text = False

    def read(self, data: bytes) -> int:
        """Returns the number of frames."""
        self.frames.receive_data(data)
        events = self.frames.events_received()
        for event in events:
            if isinstance(event, Frame):
                self._take(event)
        if self.frames.parser_exc is not None:
            self.problem = self.problem or str(self.frames.parser_exc)
        return len(events)

    def _take(self, frame: Frame) -> None:
        if frame.opcode is Opcode.CLOSE:
            said = self.frames.close_rcvd
            self.goodbye = (said.code, said.reason) if said else (1005, "")
        elif frame.opcode is Opcode.PONG:
            self.has_pong = True
        elif frame.opcode is not Opcode.PING and self.problem is None:
            self._gather(frame)

    def _gather(self, frame: Frame) -> None:
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
        self._fragments.append(bytes(frame.data))
        if len(self._fragments) > MOST_FRAGMENTS:
            self._fail(TOO_MANY_FRAGMENTS, f"more than {MOST_FRAGMENTS} fragments in a message")
        elif frame.fin:
            data, self._fragments = b"".join(self._fragments), []
            self._finish(data)

    def _finish(self, data: bytes) -> None:
        if not self._is_text:
            self.messages.append({"type": "websocket.receive", "bytes": data})
            return
        try:
            self.messages.append({"type": "websocket.receive", "text": data.decode()})
        except UnicodeDecodeError:
            self._fail(NOT_UTF_8, "a text that is not UTF-8")

    def _fail(self, code: int, reason: str) -> None:
        self._fragments.clear()
        self.problem = reason
        self.frames.fail(code, reason)


@dataclass(slots=True)
class FrameBudget:
    """The frames of a second may arrive at once; after that each waits for its share of a second.

    Frames are counted, not bytes: an empty one costs the server as much as any other, and its sender nothing.
    """

    left: float = FRAMES_PER_SECOND
    at: float = 0.0

    def spend(self, frames: int, now: float) -> None:
        self.left = min(FRAMES_PER_SECOND, self.left + (now - self.at) * FRAMES_PER_SECOND) - frames
        self.at = now

    def wait_seconds(self) -> float:
        """How long to wait before more is read; 0: not at all."""
        return max(0.0, -self.left / FRAMES_PER_SECOND)
