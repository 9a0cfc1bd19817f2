"""The systemd units of deploy/: they are valid, and what they start serves, works, records and stops."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from pathlib import Path

import httpx

from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.model.task import NewTask
from fairlead.store.doctor.doctor import examine
from tests.commands import ended
from tests.connections import patient_store
from tests.pages import Page
from tests.programs import need
from tests.prometheus import DEPLOY
from tests.recording import task_rows
from tests.servers import free_port, running
from tests.waiting import wait_until

PAGE = Page("docs/deploying.md").text
UNITS = {path.name: path.read_text() for path in (DEPLOY / "systemd").iterdir()}
WORKER = "fairlead-worker@.service"
APP = """
from fairlead import Fairlead

fl = Fairlead()


@fl.task
async def echo(text: str) -> str:
    return text
"""


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
    (tmp_path / "app.py").write_text(APP)
    port = str(free_port())
    with running("valkey") as server:
        history = f"sqlite:///{tmp_path / 'history.sqlite3'}"
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        shared = {"HOME": str(tmp_path), "PATH": path, "REDIS_URL": server.url, "DATABASE_URL": history}

        async def start(words: list[str], more: dict[str, str]) -> Process:
            here = {"8000": port, "0.0.0.0": "127.0.0.1"}
            words = [here.get(word, word) for word in words]
            words[0] = Path(words[0]).name
            more = {name: value.replace("/var/lib/fairlead", str(tmp_path)) for name, value in more.items()}
            env = shared | more
            return await create_subprocess_exec(*words, cwd=tmp_path, env=env, stdout=PIPE, stderr=PIPE)

        (create,) = re.findall(r"^REDIS_URL=\S+ (fairlead key .*)$", PAGE, re.M)
        key = (await ended(await start(shlex.split(create), {}))).out.split()[-1]
        assert key.startswith("flk_")
        processes = [await start(command(unit), environment(unit)) for unit in UNITS]
        try:
            await work(server.url, port, history)
            for process in processes:
                process.send_signal(signal.SIGTERM)
            assert [(await ended(process)).code for process in processes] == [0] * len(UNITS)
        finally:  # a server would start its processes again for ever
            for process in processes:
                if process.returncode is None:
                    process.kill()


async def work(engine: str, port: str, database: str) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:

        async def is_ready() -> bool:
            try:
                return (await client.get("/readyz")).status_code == 200
            except httpx.TransportError:
                return False

        await wait_until(is_ready)
        assert (await client.get("/api/v1/workers")).status_code == 401
    async with patient_store(engine) as store:
        task = await store.submit_one(NewTask(task_type="echo", parameters={"text": "x"}))

        async def is_done() -> bool:
            return (await store.get(task.task_id)).status == "completed"

        await wait_until(is_done)
        assert await examine(store.connection) == []
    history = History(open_database(database), "default")

    async def is_recorded() -> bool:
        return [row.status for row in await task_rows(history)] == ["completed"]

    await wait_until(is_recorded)
    await history.close()
