"""Where an app has its store, as it is said in Python."""

import os
from dataclasses import dataclass, fields
from pathlib import Path

from fairlead.settings import Settings
from fairlead.settings.loading import load_client_settings


@dataclass(frozen=True, slots=True)
class Target:
    """Which way in: the URL of a server or a gateway, or the embedded server of a data folder."""

    url: str | None = None
    data: str | None = None
    namespace: str | None = None
    config: str | None = None
    key: str | None = None

    def or_else(self, other: "Target") -> "Target":
        """This one; the other where nothing is said."""
        return Target(*(getattr(self, f.name) or getattr(other, f.name) for f in fields(self)))

    def read_settings(self) -> Settings:
        options = {
            "engine.url": ("Fairlead(url)", self.url or ""),
            "engine.data": ("Fairlead(data=)", self.data or ""),
            "engine.namespace": ("Fairlead(namespace=)", self.namespace or ""),
            "engine.key": ("Fairlead(key=)", self.key or ""),
        }
        return load_client_settings(Path(self.config) if self.config else None, os.environ, options)
