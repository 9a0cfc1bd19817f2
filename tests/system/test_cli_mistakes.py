"""Every mistake on the command line is one sentence and an exit code, never a traceback."""

import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.commands import FAIRLEAD, Ended, Shell
from tests.servers import Server

NUMBERS = ("nan", "inf", "-1", "1e400", "99999999999999999999", "many", "")
NUMERIC = (
    ("up", "--port"),
    ("up", "--grace"),
    ("up", "--processes"),
    ("server", "--port"),
    ("server", "--grace"),
    ("server", "--processes"),
    ("worker", "tasks:fl", "--grace"),
    ("worker", "tasks:fl", "--capacity"),
    ("worker", "tasks:fl", "--reserve"),
    ("worker", "tasks:fl", "--processes"),
    ("submit", "draw", "--timeout"),
    ("submit", "draw", "--max-retries"),
    ("submit", "draw", "--max-wait"),
    ("submit", "draw", "--delay"),
    ("task", "list", "--limit"),
    ("audit", "list", "--limit"),
    ("limit", "set", "gpu", "--limit"),
    ("limit", "set", "gpu", "--rate"),
    ("limit", "set", "gpu", "--rate", "1/s", "--burst"),
    ("key", "create", "--name", "web", "--scope", "read", "--rate"),
    ("key", "create", "--name", "web", "--scope", "read", "--expires"),
)
URLS = (
    "foo",
    "localhost:6379",
    "redis://",
    "redis://localhost:99999",
    "redis://localhost/first",
    "redis://localhost/-1",
    "redis://localhost:1?colour=red",
    "redis://localhost:1?socket_timeout=soon",
    "rediss://localhost:1?ssl_cert_reqs=maybe",
    "unix://",
    "ftp://localhost",
    "http://",
    "http://localhost:99999",
    "http://[::1",
    "http://a b",
    "http://ann:secret@localhost",
    "http://localhost?x=1",
)
COMMANDS = (("stats",), ("up",), ("server",), ("worker", "tasks:fl"), ("doctor",), ("submit", "draw"))
APP = "from fairlead import Fairlead\n\nfl = Fairlead({url!r})\n"


@pytest.fixture
def alone(tmp_path: Path) -> Shell:
    """Beside an app, and without a server."""
    (tmp_path / "tasks.py").write_text(APP.format(url=None))
    return Shell(tmp_path)


def check_sentence(answer: Ended, code: int = 2) -> None:
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("fairlead: ")
    assert answer.err.count("\n") == 1, answer.err
    assert "secret" not in answer.err


async def test_a_number_that_cannot_be_is_one_sentence(shell: Shell, subtests: pytest.Subtests) -> None:
    """Every option with three of the numbers, which come in turn."""
    (shell.home / "tasks.py").write_text(APP.format(url=None))
    for turn, command in enumerate(NUMERIC):
        for number in islice(cycle(NUMBERS), 3 * turn, 3 * turn + 3):
            with subtests.test(command=command, number=number):
                check_sentence(await shell.run(*command[:-1], f"{command[-1]}={number}"))


async def test_a_url_that_cannot_be_is_one_sentence(alone: Shell, subtests: pytest.Subtests) -> None:
    """Every URL with two of the commands, which come in turn."""
    for turn, url in enumerate(URLS):
        for command in islice(cycle(COMMANDS), turn, turn + 2):
            with subtests.test(command=command, url=url):
                check_sentence(await alone.run(*command, "--engine", url))


@pytest.mark.parametrize(
    "variable", ["REDIS_URL", "FAIRLEAD_URL", "FAIRLEAD_ENGINE__URL", "PRIORITY_API_URL"]
)
async def test_a_variable_that_holds_no_url_is_one_sentence(variable: str, tmp_path: Path) -> None:
    answer = await Shell(tmp_path, env={variable: "localhost:6379"}).run("stats")
    check_sentence(answer)
    assert variable in answer.err


async def test_a_url_in_the_code_of_an_app_is_one_sentence(alone: Shell, subtests: pytest.Subtests) -> None:
    for url in URLS:
        with subtests.test(url=url):
            (alone.home / "tasks.py").write_text(APP.format(url=url))
            check_sentence(await alone.run("worker", "tasks:fl"))


async def test_a_url_without_its_scheme_is_completed(alone: Shell) -> None:
    answer = await alone.run("stats", "--engine", "localhost:6379")
    assert "write redis://localhost:6379 for a server, or http://localhost:6379 for a gateway" in answer.err


@pytest.mark.parametrize("command", [*COMMANDS, ("config", "check")], ids=" ".join)
async def test_a_path_that_cannot_be_used_is_one_sentence(
    command: tuple[str, ...], alone: Shell, subtests: pytest.Subtests
) -> None:
    (alone.home / "file").touch()
    (alone.home / "folder").mkdir()
    (alone.home / "binary").write_bytes(b"\xff\xfe\0")
    options = [("--config", path) for path in ("folder", "missing.toml", "binary", "file/inside")]
    if command[0] != "config":  # which opens no folder
        options += [("--data", "file"), ("--data", "file/inside")]
    for option, path in options:
        with subtests.test(option=option, path=path):
            check_sentence(await alone.run(*command, option, path))


@pytest.mark.parametrize("namespace", ["a b", "ä", "n" * 65])
async def test_a_namespace_that_cannot_be_is_one_sentence(
    namespace: str, alone: Shell, subtests: pytest.Subtests
) -> None:
    for command in (*COMMANDS, ("config", "check")):
        with subtests.test(command=command):
            check_sentence(await alone.run(*command, "--namespace", namespace))


def ran(command: str, *, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    """By a shell that redirects what Python cannot."""
    return subprocess.run(
        ["bash", "-c", command.replace("fairlead", f"{sys.executable} -m fairlead.cli")],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": encoding},
    )


def test_closed_streams_are_no_failure(subtests: pytest.Subtests) -> None:
    for closed in (">&-", "2>&-", "<&- >&- 2>&-"):
        with subtests.test(closed=closed):
            done = ran(f"fairlead config check {closed}")
            assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_one_sentence() -> None:
    done = ran("fairlead config check > /dev/full")
    assert (done.returncode, done.stderr) == (
        1,
        "fairlead: cannot write the answer: No space left on device\n",
    )


def test_a_full_disk_behind_stderr_leaves_the_exit_code() -> None:
    assert ran("fairlead config check --engine foo 2> /dev/full").returncode == 2


def test_characters_that_the_terminal_lacks_are_escaped() -> None:
    done = ran("fairlead config check --data ä | grep engine.data", encoding="ascii")
    assert (done.stdout.split(), done.stderr) == (["engine.data", "\\xe4", "--data"], "")


async def test_a_list_that_is_cut_off_ends_quietly(server: Server, shell: Shell) -> None:
    where = " ".join(shell.where)
    await shell.run("submit", "draw")
    done = ran(f"set -o pipefail; fairlead task list {where} | head -1")
    assert (done.returncode, done.stderr, done.stdout[:4]) == (0, "", "task")


@pytest.mark.parametrize("command", ["worker tasks:fl", "up --port 0 --app tasks:fl"])
def test_a_folder_that_no_longer_exists_is_one_sentence(tmp_path: Path, command: str) -> None:
    script = f"mkdir gone && cd gone && rmdir ../gone && exec {FAIRLEAD} {command}"
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, env=env, timeout=50
    )
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert (
        "fairlead: app: the working folder no longer exists: change to the folder of the app" in ended.stderr
    )
