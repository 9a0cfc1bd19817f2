"""Refusals that the protocol itself sends, before or instead of the application."""

from fairlead.api.problems import HttpProblem


class MalformedRequest(HttpProblem):
    """This is not HTTP/1.1: check the request line, the headers and the length of the body."""

    status, code = 400, "malformed_request"


class HeadTooLarge(HttpProblem):
    """The address and the headers are larger than 64 KiB: send less in them."""

    status, code = 431, "head_too_large"


class BadHandshake(HttpProblem):
    """This is not a WebSocket handshake: see RFC 6455, section 4.1."""

    status, code = 400, "bad_handshake"


class ServerFull(HttpProblem):
    """This server has reached its limit of connections: connect again in a moment."""

    status, code = 503, "server_full"
    headers = (("retry-after", "1"),)

    def __init__(self, most: int) -> None:
        super().__init__(
            f"This server has reached its limit of {most} connections: connect again in a moment."
        )


class HandshakeTimeout(HttpProblem):
    """The handshake was not answered in time: the store is unavailable, or many wait. Retry in a second."""

    status, code = 503, "handshake_timeout"
    headers = (("retry-after", "1"),)


class ServerStops(HttpProblem):
    """This server is stopping: connect again, to another one or later."""

    status, code = 503, "server_stops"
    headers = (("retry-after", "1"),)
