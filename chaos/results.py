"""Keeps what a campaign found, with what it ran on."""

import datetime
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.record import machine, versions
from fairlead.store.engine.process import find_server

FOLDER = Path(__file__).parent / "results"


def keep(campaign: str, figures: dict[str, Any]) -> Path:
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{campaign}.json"
    server = subprocess.run([find_server({}), "--version"], capture_output=True, text=True, check=True)
    on = {
        "versions": {**versions(), "server": server.stdout.strip()},
        "machine": {**machine(), "load_after": os.getloadavg()[0]},
    }
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    path.write_text(json.dumps({"campaign": campaign, "at": when, "on": on, **figures}, indent=2) + "\n")
    return path
