"""Installs each queue into its own folder, outside of the repository, when it is first needed."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.peers.table import Peer

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fairlead-benchmarks"
OWN = Path(sys.prefix)  # where Fairlead itself is
PATIENCE = 600  # seconds


class NotInstalled(Exception):
    """A queue could not be installed here, so it is left out."""


def install(peer: Peer) -> Path:
    """The folder of its environment, made again when the table names other versions."""
    if not peer.packages:
        return OWN
    home = CACHE / peer.name
    stamp, wanted = home / "installed.json", json.dumps([platform.python_version(), *peer.packages])
    if stamp.exists() and stamp.read_text() == wanted:
        return home
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for command in _commands(peer, home):
        _run(command)
    stamp.write_text(wanted)
    return home


def _commands(peer: Peer, home: Path) -> list[list[str]]:
    if peer.runs_on == "node":
        return [["npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), *peer.packages]]
    uv = [sys.executable, "-m", "uv"]
    return [
        [*uv, "venv", "--python", sys.executable, str(home)],
        [*uv, "pip", "install", "--python", str(home / "bin" / "python"), *peer.packages],
    ]


def _run(command: list[str]) -> None:
    # uv brings its own list of certificates; a machine behind a company proxy has the right one itself
    environment = {"UV_SYSTEM_CERTS": "1"} | os.environ
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False
        )
    except FileNotFoundError as missing:
        raise NotInstalled(f"{command[0]} is not on the PATH") from missing
    except subprocess.TimeoutExpired as slow:
        raise NotInstalled(f"{command[0]} took more than {PATIENCE} s") from slow
    if ran.returncode:
        lines = [line.strip() for line in ran.stderr.splitlines() if line.strip() and "log" not in line]
        reason = lines[-1] if lines else "no reason given"
        raise NotInstalled(re.sub(r"\w+://\S+", "the registry", reason))  # it is kept; whose it was is not
