"""The command as a user runs it: real processes, real data folders."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead import Fairlead
from fairlead.testing import check
from tests.commands import FAIRLEAD, Shell, ended
from tests.engine_processes import ROOT, launch, opened
from tests.servers import Server
from tests.waiting import wait_until

AS_ORPHAN = "import tests.apps.orphaned, fairlead.cli; fairlead.cli.main()"


def fairlead(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [FAIRLEAD, *arguments], capture_output=True, text=True, env=env, timeout=50, cwd=home
    )


def test_up_stops_on_a_signal_and_leaves_no_server_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [FAIRLEAD, "up", "--data", str(tmp_path), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    try:
        assert process.stdout
        assert "Fairlead listens at" in process.stdout.readline()
        assert (tmp_path / "engine" / "socket").exists()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert not (tmp_path / "engine" / "socket").exists()
        process.stdout.close()
    finally:
        process.kill()


async def test_the_doctor_names_a_breach_and_ends_with_1(tmp_path: Path, server: Server) -> None:
    import redis

    namespace = "cli-doctor-demo"
    where = ("--engine", server.url, "--namespace")
    shell = Shell(tmp_path)
    up = await shell.run("up", "--demo", "--once", "--port", "0", *where, "cli-doctor")
    assert up.code == 0, up.err
    with redis.Redis.from_url(server.url) as client:
        client.hset(f"{{fl:{namespace}}}:limit:image_gen", "used", "1")
        doctor = await shell.run("doctor", *where, namespace)
        assert doctor.code == 1
        assert "limit image_gen" in doctor.out
        as_json = json.loads((await shell.run("doctor", *where, namespace, "--output", "json")).out)
        assert {breach["invariant"] for breach in as_json["breaches"]} >= {"I3"}
        client.delete(*client.keys("{fl:cli-doctor*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("worker", "tasks:fl", "--capacity", "0"), "capacity: is not a whole number from 1 to"),
        (("worker", "tasks:fl", "--reserve", "-1"), "reserve: is not a whole number from 0 to"),
        (("worker", "tasks:fl", "--processes", "0"), "--processes: is not a whole number from 1 to"),
        (("worker", "tasks:fl", "--grace", "nan"), "grace: is not a number of seconds"),
        (("up", "--app", "tasks:fl", "--processes", "0"), "--processes: is not a whole number from 1 to"),
        (("server", "--host", "0.0.0.0", "--processes", "0"), "--processes: is not a whole number from 1 to"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
async def test_a_number_that_means_nothing_is_refused_with_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    ran = await Shell(tmp_path).run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"fairlead: {words}")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("up", "--engine", "redis://127.0.0.1:1", "--port", "0"), 3, "did not answer"),
        (("doctor", "--engine", "redis://127.0.0.1:1"), 3, "did not answer"),
        (("up", "--namespace", "not good", "--port", "0"), 2, "namespace"),
        (("doctor", "--nonsense"), 2, "--nonsense"),
        (("doctor", "--data", "data"), 2, "Namespace 'default' at"),
        (("doctor", "--data", "data", "--output", "json"), 2, "does not exist, so there is nothing to check"),
        (("up", "--engine", "redis+sentinel://:secret@h:26379", "--port", "0"), 2, "end with the service"),
        (("stats", "--engine", "redis+sentinel://127.0.0.1:1/jobs"), 3, "none of 127.0.0.1:1 answers"),
        (("worker", "x:y", "--engine", "redis+cluster://h:6379,,g:1"), 2, "host is missing between"),
        (("stats", "--engine", "rediss+cluster://:secret@h:6379/3"), 2, "no numbered databases"),
        (("stats", "--engine", "redis-cluster://h:6379"), 2, "url must be redis+cluster://HOST:PORT"),
        (("stats", "--engine", "valkey://h:6379"), 2, "write redis:// or rediss://"),
        (("stats", "--engine", "localhost"), 2, "url must be redis://HOST:PORT"),
        (("stats", "--engine", "redis://h:99999"), 2, "Port out of range"),
        (("stats", "--engine", "redis://h:1?socket_timeout=x"), 2, "the URL of the server cannot be used"),
        (("stats", "--engine", "unix://"), 2, "names no path"),
        (("stats", "--engine", "redis://:secret@:6379"), 2, "names no host"),
    ],
)
async def test_a_command_that_cannot_work_ends_with_one_clear_line(
    arguments: tuple[str, ...], code: int, says: str, tmp_path: Path
) -> None:
    ended = await Shell(tmp_path).run(*arguments)
    assert ended.code == code
    assert says in ended.err
    assert "secret" not in ended.err
    assert "Traceback" not in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    "command", [("submit", "draw"), ("stats",), ("doctor",), ("up", "--demo", "--once", "--port", "0")]
)
async def test_a_command_continues_when_the_owner_of_its_server_has_just_left(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    async with Fairlead(data=data):
        pass  # there is data to read
    owner = await opened(launch(data))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", AS_ORPHAN, *command, "--data", str(data)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )
    await wait_until((tmp_path / "adopted").exists, 40)
    await owner.close()
    answer = await ended(process)
    assert answer.code == 0, answer.err
    async with Fairlead(data=data) as fl:
        assert await check(fl) == []
