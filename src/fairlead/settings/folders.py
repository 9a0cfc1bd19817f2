"""Where Fairlead keeps its files if no setting says otherwise."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from fairlead.settings.processes import EngineSettings


def default_data_folder(env: Mapping[str, str]) -> Path:
    """Where Fairlead keeps its data if no setting says otherwise."""
    return _default_folder(env, "XDG_DATA_HOME", "share")


def data_folder(engine: EngineSettings) -> Path:
    return Path(engine.data).expanduser().absolute() if engine.data else default_data_folder(os.environ)


def default_state_folder(env: Mapping[str, str]) -> Path:
    """Where Fairlead remembers the namespaces on servers of your own."""
    folder = _default_folder(env, "XDG_STATE_HOME", "state")
    return folder / "state" if sys.platform == "darwin" else folder


def _default_folder(env: Mapping[str, str], variable: str, below_local: str) -> Path:
    home = Path(env.get("HOME") or Path.home())
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "fairlead"
    # The base directory specification says that a relative path is to be ignored.
    base = Path(env.get(variable, ""))
    return (base if base.is_absolute() else home / ".local" / below_local) / "fairlead"
