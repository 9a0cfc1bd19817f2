"""The systemd units of docs/deploying.md: they are valid, and what they start serves, works and stops."""

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from pathlib import Path

import httpx
import pytest

from fairlead.model.task import NewTask
from tests.commands import ended
from tests.connections import patient_store
from tests.pages import Page, all_blocks
from tests.servers import free_port, running
from tests.waiting import wait_until

PAGE = Page("docs/deploying.md").text
UNITS = dict(re.findall(r"^```ini\n# /etc/systemd/system/(\S+)\n(.*?)^```", PAGE, re.M | re.S))
APP = """
from fairlead import Fairlead

fl = Fairlead()


@fl.task
async def echo(text: str) -> str:
    return text
"""


def service(unit: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNITS[unit])
    return parser["Service"]


def test_the_units_are_valid(tmp_path: Path) -> None:
    if not (analyze := shutil.which("systemd-analyze")):
        pytest.skip("no systemd-analyze on this machine")
    assert len(UNITS) == 2
    for name, text in UNITS.items():
        here = text.replace("/srv/app/.venv/bin/fairlead", sys.executable).replace("/srv/app", str(tmp_path))
        (tmp_path / name).write_text(here.replace("User=fairlead", f"User={os.getuid()}"))
        checked = subprocess.run([analyze, "verify", tmp_path / name], capture_output=True, text=True)
        complaints = [line for line in checked.stderr.splitlines() if name in line]
        assert complaints == []


def test_every_block_is_a_unit_the_command_or_the_image() -> None:
    assert [block.kind for block in all_blocks(PAGE)] == ["sh", "ini", "ini", "dockerfile"]


def test_the_image_starts_what_the_unit_starts() -> None:
    (command,) = re.findall(r"^CMD (.*)$", PAGE, re.M)
    unit = service("fairlead-worker.service")["ExecStart"]
    assert json.loads(command) == shlex.split(unit.removeprefix("/srv/app/.venv/bin/"))


async def test_what_they_start_works_and_stops_in_time(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    port = str(free_port())
    with running("valkey") as server:

        async def start(line: str) -> Process:
            line = (
                line.replace("/srv/app/.venv/bin/", "").replace("8000", port).replace("0.0.0.0", "127.0.0.1")
            )
            path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
            environment = os.environ | {"HOME": str(tmp_path), "PATH": path, "REDIS_URL": server.url}
            command = shlex.split(line)
            return await create_subprocess_exec(
                *command, cwd=tmp_path, env=environment, stdout=PIPE, stderr=PIPE
            )

        (create,) = re.findall(r"^```sh\nREDIS_URL=\S+ (.*?)^```", PAGE, re.M | re.S)
        key = (await ended(await start(create))).out.split()[-1]
        assert key.startswith("flk_")
        processes = [await start(service(unit)["ExecStart"]) for unit in UNITS]
        try:
            await work(server.url, port)
            for process in processes:
                process.send_signal(signal.SIGTERM)
            assert [(await ended(process)).code for process in processes] == [0, 0]
        finally:  # a server would start its processes again for ever
            for process in processes:
                if process.returncode is None:
                    process.kill()


async def work(engine: str, port: str) -> None:
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
