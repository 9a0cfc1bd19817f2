"""The systemd units of deploy/: they are valid, and what they start serves, works, records and stops."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.deployed import DEPLOY, Machine, start_and_work
from tests.pages import Page
from tests.programs import need
from tests.servers import running

PAGE = Page("docs/deploying.md").text
UNITS = {path.name: path.read_text() for path in (DEPLOY / "systemd").iterdir()}
WORKER = "fairlead-worker@.service"


def service(unit: str) -> dict[str, list[str]]:
    """Its section `Service`; a key may be there several times."""
    found: dict[str, list[str]] = {}
    for line in UNITS[unit].partition("[Service]\n")[2].partition("\n\n")[0].splitlines():
        name, _, value = line.partition("=")
        found.setdefault(name, []).append(value)
    return found


def environment(unit: str) -> dict[str, str]:
    words = [word for value in service(unit)["Environment"] for word in shlex.split(value)]
    return dict(word.split("=", 1) for word in words)


def command(unit: str) -> list[str]:
    """What it starts without a file of its instance."""
    (line,) = service(unit)["ExecStart"]
    return shlex.split(line.replace("$OPTIONS", environment(unit).get("OPTIONS", "")))


def test_the_units_are_valid(tmp_path: Path) -> None:
    need("systemd-analyze")
    for name, text in UNITS.items():
        here = text.replace("/srv/app/.venv/bin/fairlead", sys.executable).replace("/srv/app", str(tmp_path))
        (tmp_path / name).write_text(here.replace("User=fairlead", f"User={os.getuid()}"))
        checked = subprocess.run(
            ["systemd-analyze", "verify", tmp_path / name], capture_output=True, text=True
        )
        complaints = [line for line in checked.stderr.splitlines() if name in line]
        assert complaints == []


def test_the_page_shows_the_units_as_they_are() -> None:
    shown = dict(re.findall(r"^```ini\n# /etc/systemd/system/(\S+)\n(.*?)^```", PAGE, re.M | re.S))
    assert shown == {name: UNITS[name] for name in ("fairlead-server.service", WORKER)}


def test_the_image_starts_what_the_unit_starts() -> None:
    (image,) = re.findall(r"^CMD (.*)$", PAGE, re.M)
    program, *options = command(WORKER)
    assert json.loads(image) == [Path(program).name, *options]


def test_a_unit_waits_for_longer_than_the_grace_period() -> None:
    for name in ("fairlead-server.service", WORKER):
        words, unit = command(name), service(name)
        assert float(unit["TimeoutStopSec"][0]) >= float(words[words.index("--grace") + 1]) + 5
        assert unit["KillMode"] == ["mixed"]


async def test_what_they_start_works_and_stops_in_time(tmp_path: Path) -> None:
    (create,) = re.findall(r"^REDIS_URL=\S+ (fairlead key .*)$", PAGE, re.M)
    commands = [(command(unit), environment(unit)) for unit in UNITS]
    with running("valkey") as server:
        await start_and_work(Machine(server.url, tmp_path), shlex.split(create), commands)
