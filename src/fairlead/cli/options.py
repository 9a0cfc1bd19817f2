"""Options that several commands share."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fairlead.errors import NamespaceNotOpen
from fairlead.settings import Settings
from fairlead.settings_file import read_settings
from fairlead.settings_values import Sources

if TYPE_CHECKING:
    from fairlead.store.store import Store

Output = Annotated[Literal["table", "json"], Parameter(help="How to print the answer.")]


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
        options = {
            "engine.url": ("--engine", self.engine or ""),
            "engine.data": ("--data", str(self.data or "")),
            "engine.namespace": ("--namespace", self.namespace or ""),
        }
        return read_settings(self.config, os.environ, options)


@asynccontextmanager
async def open_store(options: StoreOptions | None, *, join: bool = False) -> "AsyncIterator[Store]":
    """The store the options name; nothing is written by looking. `join`: the namespace is made if need be."""
    from fairlead.store.opening import connected_store  # not for `config check`, which needs no server

    settings, _ = (options or StoreOptions()).read_settings()
    async with connected_store(settings) as store:
        try:
            await (store.open(govern=False) if join else store.check_open())
            yield store
        except NamespaceNotOpen:
            raise NamespaceNotOpen(
                f"Namespace {settings.engine.namespace!r} at {store.address} was never opened, or is lost: "
                "check --namespace, --engine and --data, or open it with `fairlead up`."
            ) from None
