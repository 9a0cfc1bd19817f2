"""Opening a connection to the server of a URL: its host or socket, TLS, password and database.

The client library reads the URL. Connections are opened here, each one ours from its first byte.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from redis.asyncio import Redis, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from fairlead.errors import InvalidSettings
from fairlead.settings.urls import engine_url_problem

P = TypeVar("P", bound=asyncio.Protocol)

ANSWER_WITHIN = 2.0  # seconds; a script takes microseconds, so silence means the server is away
PROTOCOL = 3  # replies as maps, and messages of a subscription distinct from replies
#: Seconds of silence, seconds between probes, and probes: a host that vanished is noticed within a minute.
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}


def make_client(url: str, *, answer_within: float | None = None) -> Redis:
    """A client that never sends anything twice: a script whose reply was lost may have run.

    It has no timeout unless asked for one, because its timeout may swallow a cancellation (by `wait_for` of
    Python 3.11). `Connection.guard` limits the time instead.
    """
    if problem := engine_url_problem(url):
        raise InvalidSettings(problem)
    try:
        client: Redis = Redis.from_url(
            url,
            retry=Retry(NoBackoff(), 0),
            socket_connect_timeout=ANSWER_WITHIN,
            socket_timeout=answer_within,
            max_connections=1000,
        )
    except ValueError as error:  # an option after the question mark, say
        raise InvalidSettings(f"the URL of the server cannot be used: {error}") from None
    check_options(client)
    return client


def options_of(client: Redis) -> Mapping[str, Any]:
    """What the URL says, by the names of the client library."""
    options: Mapping[str, Any] = client.get_connection_kwargs()  # type: ignore[no-untyped-call]
    return options


async def open_connection(client: Redis, protocol: Callable[[], P]) -> P:
    """A connection on which nothing was sent yet."""
    loop, options = asyncio.get_running_loop(), options_of(client)
    if "path" in options:
        return (await loop.create_unix_connection(protocol, options["path"]))[1]
    host, port = options.get("host") or "localhost", int(options.get("port") or 6379)
    tls = _tls(client)
    transport, made = await loop.create_connection(
        protocol, host, port, ssl=tls, server_hostname=host if tls else None
    )
    _keep_alive(transport.get_extra_info("socket"))
    return made


def greeting(options: Mapping[str, Any]) -> list[tuple[str | int, ...]]:
    """The commands that each connection begins with; all of them must be accepted."""
    hello: tuple[str | int, ...] = ("HELLO", PROTOCOL)
    username, password = options.get("username"), options.get("password")
    if username or password:
        hello += ("AUTH", username or "default", password or "")
    if name := options.get("client_name"):
        hello += ("SETNAME", name)
    database = int(options.get("db") or 0)
    return [hello, ("SELECT", database)] if database else [hello]


def parse_info(said: bytes) -> dict[str, str]:
    """What `INFO` says."""
    lines = (line.partition(":") for line in said.decode(errors="replace").splitlines())
    return {name: value for name, colon, value in lines if colon}


def check_options(client: Redis) -> None:
    """Raises InvalidSettings for what the URL says after its question mark, if it cannot be used."""
    try:
        client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    except TypeError as problem:
        unknown = str(problem).rpartition(" ")[2]
        raise InvalidSettings(
            f"the URL of the engine has an unknown option {unknown}: leave it out"
        ) from None
    except RedisError:
        wanted = options_of(client).get("ssl_cert_reqs")
        raise InvalidSettings(
            f"the URL of the engine has ssl_cert_reqs={wanted}: use one of none, optional, required"
        ) from None


def _tls(client: Redis) -> ssl.SSLContext | None:
    connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    return connection.ssl_context.get() if isinstance(connection, SSLConnection) else None


def _keep_alive(opened: socket.socket) -> None:
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # not on every system
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
