"""Keeps what a campaign found, with what it ran on."""

import datetime
import json
import platform
from pathlib import Path
from typing import Any

from fairlead import __version__

FOLDER = Path(__file__).parent / "results"


def keep(campaign: str, figures: dict[str, Any]) -> Path:
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{campaign}.json"
    on = {"fairlead": __version__, "python": platform.python_version(), "system": platform.platform()}
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    path.write_text(json.dumps({"campaign": campaign, "at": when, "on": on, **figures}, indent=2) + "\n")
    return path
