"""WebSockets as uvicorn speaks them, with a bound it has not: on the time for which a reader may not read."""

import contextlib
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.protocol import State

from fairlead.api.live.connections import TOO_SLOW
from fairlead.api.slow_readers import GivesUpSlowReaders


class CappedSocketProtocol(GivesUpSlowReaders, WebSocketsSansIOProtocol):
    read_seconds: float  # of HTTP; a client may be silent here

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # it is refused; uvicorn would log that as a fault of ours

    def give_up(self) -> None:
        """It finds out why if it reads after all; whoever waits to send learns of it at once."""
        # not once the client has closed: its frame was answered, and a second one would be refused
        if self.conn.state is State.OPEN:
            self.conn.send_close(TOO_SLOW, "reads too slowly")
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self._hang_up()
        self.loop.call_later(self.close_timeout, self.transport.abort)

    def shutdown(self) -> None:
        with contextlib.suppress(InvalidState):  # uvicorn would say goodbye to one that has said it already
            super().shutdown()
        if not self.writable.is_set():  # else a stopping server would wait for a reader that does not read
            self._hang_up()
            self.transport.abort()

    def _hang_up(self) -> None:
        self.stop_keepalive()
        self.disconnected = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": TOO_SLOW})
        self.writable.set()
        self.transport.close()
