"""Options that several commands share."""

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fairlead.cli.output import Output
from fairlead.errors import InvalidInput, NamespaceNotOpen
from fairlead.settings import Settings
from fairlead.settings.loading import load_client_settings, read_settings
from fairlead.settings.sources import Sources

if TYPE_CHECKING:
    from fairlead.backend import Backend
    from fairlead.store.store import Store

MOST_PROCESSES = 1_000

OutputOption = Annotated[Output, Parameter(help="How to print the answer.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Which server, which namespace, which settings; an option overrides the file and the environment."""

    config: Annotated[
        Path | None, Parameter(help="File with the settings; else ./fairlead.toml, if any.")
    ] = None
    engine: Annotated[
        str | None, Parameter(help="URL of the Redis or Valkey to use; else the embedded one.")
    ] = None
    data: Annotated[Path | None, Parameter(help="Folder of the embedded server.")] = None
    namespace: Annotated[str | None, Parameter(help="Name that keeps gateways on one server apart.")] = None

    def read_settings(self) -> tuple[Settings, Sources]:
        """The settings in effect for this command, and what set each."""
        return read_settings(self.config, os.environ, self._given())

    def _given(self) -> dict[str, tuple[str, str]]:
        return {
            "engine.url": ("--engine", self.engine or ""),
            "engine.data": ("--data", str(self.data or "")),
            "engine.namespace": ("--namespace", self.namespace or ""),
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServerOptions(StoreOptions):
    """Of a process that keeps running, and writes a log."""

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        Parameter(help="The lowest level that is logged; else info."),
    ] = None
    log_format: Annotated[
        Literal["text", "json"] | None, Parameter(help="The format of log lines; else text.")
    ] = None

    auto_restore: Annotated[
        bool,
        Parameter(help="After a loss of data, restore it from the history without an operator.", negative=()),
    ] = False

    def _given(self) -> dict[str, tuple[str, str]]:
        return super()._given() | {
            "history.auto_restore": ("--auto-restore", "true" if self.auto_restore else ""),
            "log.level": ("--log-level", self.log_level or ""),
            "log.format": ("--log-format", self.log_format or ""),
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ClientOptions(StoreOptions):
    """Through a gateway, or to the server itself."""

    url: Annotated[
        str | None, Parameter(help="URL of a gateway (FAIRLEAD_URL); else the engine is used itself.")
    ] = None
    key: Annotated[str | None, Parameter(help="API key for the gateway (FAIRLEAD_KEY).")] = None

    def client_settings(self) -> Settings:
        if self.url is not None and (self.engine or self.data):
            raise InvalidInput("--url", "leads through a gateway: leave out --engine and --data, or this")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise InvalidInput("--url", "is the address of a gateway, like http://127.0.0.1:8000")
        given = self._given() | {"engine.key": ("--key", self.key or "")}
        if self.url is not None:
            given["engine.url"] = ("--url", self.url)
        return load_client_settings(self.config, os.environ, given)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options(ClientOptions):
    """Of a command that does one thing and prints an answer."""

    output: OutputOption = "table"


DEFAULTS = Options()


def open_backend(options: ClientOptions, *, join: bool = False) -> "AbstractAsyncContextManager[Backend]":
    """The gateway that the options name, or the store itself."""
    return opened_backend(options.client_settings(), join=join)


def opened_backend(settings: Settings, *, join: bool = False) -> "AbstractAsyncContextManager[Backend]":
    if settings.engine.is_gateway:
        from fairlead.client.client import Client  # its HTTP library brings much that others do not need

        return Client(settings)
    return _opened(settings, join)


def open_store(options: ClientOptions, *, join: bool = False) -> "AbstractAsyncContextManager[Store]":
    """The store itself, for what no gateway can do."""
    return _opened(options.client_settings(), join)


@asynccontextmanager
async def _opened(settings: Settings, join: bool) -> "AsyncIterator[Store]":
    """Reading writes nothing. `join`: the namespace is created if necessary."""
    # not for `config check`, which needs no server
    from fairlead.history.archive import with_archive
    from fairlead.store.opening import connected_store, first_act, visit

    async with with_archive(connected_store(settings), settings) as store:
        try:
            await first_act(store, lambda: store.open(govern=False) if join else visit(store))
            if join:
                store.remember()
            yield store
        except NamespaceNotOpen:
            raise NamespaceNotOpen(
                f"Namespace {settings.engine.namespace!r} at {store.connection.address} was never opened, "
                "or is lost: check --namespace, --engine and --data, or open it with `fairlead up`."
            ) from None
