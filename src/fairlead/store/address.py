"""Where a server is and how it is greeted: the URL's host or socket, TLS, password and database.

The client library reads the URL. Connections are opened here, each one ours from its first byte.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from redis.asyncio import Redis, SSLConnection

from fairlead.errors import InvalidSettings

P = TypeVar("P", bound=asyncio.Protocol)

VERIFY = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
PROTOCOL = 3  # replies as maps, and messages of a subscription distinct from replies
#: Seconds of silence, seconds between probes, and probes: a host that vanished is noticed within a minute.
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}


@dataclass(frozen=True, slots=True)
class Address:
    host: str = "localhost"
    port: int = 6379
    path: str | None = None  # of a unix socket
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    database: int = 0
    client_name: str | None = None
    tls: ssl.SSLContext | None = None
    connect_within: float | None = None  # seconds, from the first packet to the answer to the greeting

    @classmethod
    def of(cls, client: Redis) -> "Address":
        options: Mapping[str, Any] = client.get_connection_kwargs()  # type: ignore[no-untyped-call]
        return cls(
            host=options.get("host") or "localhost",
            port=int(options.get("port") or 6379),
            path=options.get("path"),
            username=options.get("username"),
            password=options.get("password"),
            database=int(options.get("db") or 0),
            client_name=options.get("client_name"),
            tls=_tls(options) if issubclass(client.connection_pool.connection_class, SSLConnection) else None,
            connect_within=options.get("socket_connect_timeout"),
        )

    async def open(self, protocol: Callable[[], P]) -> P:
        """A connection on which nothing was said yet."""
        loop = asyncio.get_running_loop()
        if self.path is not None:
            return (await loop.create_unix_connection(protocol, self.path))[1]
        name = self.host if self.tls else None
        transport, made = await loop.create_connection(
            protocol, self.host, self.port, ssl=self.tls, server_hostname=name
        )
        _keep_alive(transport.get_extra_info("socket"))
        return made

    def greeting(self) -> list[tuple[str | int, ...]]:
        """The commands that each connection begins with; all of them must be accepted."""
        hello: tuple[str | int, ...] = ("HELLO", PROTOCOL)
        if self.username or self.password:
            hello += ("AUTH", self.username or "default", self.password or "")
        if self.client_name:
            hello += ("SETNAME", self.client_name)
        return [hello, ("SELECT", self.database)] if self.database else [hello]


def _tls(options: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    wanted = options.get("ssl_cert_reqs", "required")
    if wanted not in VERIFY:
        raise InvalidSettings(
            f"the URL of the engine has ssl_cert_reqs={wanted}: use one of {', '.join(VERIFY)}"
        )
    verify = VERIFY[wanted]
    context.check_hostname = options.get("ssl_check_hostname", True) and verify is not ssl.CERT_NONE
    context.verify_mode = verify
    for flag in options.get("ssl_include_verify_flags") or ():
        context.verify_flags |= flag
    for flag in options.get("ssl_exclude_verify_flags") or ():
        context.verify_flags &= ~flag
    if certificate := options.get("ssl_certfile"):
        context.load_cert_chain(certificate, options.get("ssl_keyfile"), options.get("ssl_password"))
    trusted = {name: options.get(f"ssl_ca_{name}") for name in ("certs", "path", "data")}
    if any(trusted.values()):
        context.load_verify_locations(trusted["certs"], trusted["path"], trusted["data"])
    if options.get("ssl_min_version") is not None:
        context.minimum_version = ssl.TLSVersion(options["ssl_min_version"])
    if options.get("ssl_ciphers"):
        context.set_ciphers(options["ssl_ciphers"])
    return context


def _keep_alive(opened: socket.socket) -> None:
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # not on every system
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
