"""Options that several commands share."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from fairlead.settings import Settings
from fairlead.settings_file import read_settings
from fairlead.settings_values import Sources

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
