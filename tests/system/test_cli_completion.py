"""The shell completes commands, options and values, among them those that only the server knows."""

import asyncio
import os
import pty
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fairlead import Fairlead
from fairlead.cli import COMMANDS
from fairlead.model.task import NewTask
from fairlead.settings import Slots, TaskSettings
from fairlead.store.store import Store
from tests.commands import Shell
from tests.waiting import wait_until

COMPLETE = """
source "$1"
COMP_WORDS=(fairlead "${@:2}")
COMP_CWORD=$(( $# - 1 ))
COMP_LINE="${COMP_WORDS[*]}"
COMP_POINT=${#COMP_LINE}
$(complete -p fairlead | sed 's/.*-F \\([^ ]*\\).*/\\1/')
echo "${COMPREPLY[@]}"
"""


async def test_the_shell_completes_commands_options_and_values(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    installed = await Shell(tmp_path).run("--install-completion", "--shell", "bash", "--output", str(script))
    assert (installed.code, installed.err) == (0, "")

    def completed(*words: str) -> set[str]:
        command = ["bash", "-c", COMPLETE, "bash", str(script), *words]
        return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())

    assert completed("") >= {name for name in COMMANDS if not name.startswith("-")}
    assert completed("dlq", "") == {"list", "show", "replay", "purge"}
    assert completed("submit", "draw", "--idem") == {"--idempotency-key"}
    assert completed("submit", "draw", "--priority", "") == {"high", "medium", "low"}


async def test_completion_is_loaded_by_the_shell_that_is_used(tmp_path: Path) -> None:
    installed = await Shell(tmp_path).run("--install-completion", "--shell", "bash")
    assert installed.code == 0
    script = tmp_path / ".local/share/bash-completion/completions/fairlead"
    assert str(script) in installed.out
    assert f'. "{script}"' in (tmp_path / ".bashrc").read_text()


async def test_a_shell_that_cannot_be_detected_must_be_given(tmp_path: Path) -> None:
    answer = await Shell(tmp_path).run("--install-completion")
    assert (answer.code, answer.out) == (2, "")
    assert "say bash, zsh or fish" in answer.err
    assert list(tmp_path.iterdir()) == []


async def installed(shell: str, folder: Path) -> Path:
    script = folder / f"completion.{shell}"
    answer = await Shell(folder).run("--install-completion", "--shell", shell, "--output", str(script))
    assert (answer.code, answer.err) == (0, "")
    return script


def environment(home: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # a busy machine needs longer than a person would wait
    patience = {"FAIRLEAD_COMPLETION_SECONDS": "20"}
    return {"HOME": str(home), "PATH": path, "PYTHONPATH": ":".join(sys.path), **patience}


def bash_offers(script: Path, *words: str) -> set[str]:
    command = ["bash", "-c", COMPLETE, "bash", str(script), *words]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment(script.parent))
    assert (ran.returncode, ran.stderr) == (0, "")
    return set(ran.stdout.split())


def fish_offers(script: Path, *words: str) -> set[str]:
    line = " ".join(("fairlead", *words))
    ran = subprocess.run(
        ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
        capture_output=True,
        text=True,
        env=environment(script.parent),
    )
    return {line.split("\t")[0] for line in ran.stdout.splitlines()}


async def until_offered(offers: Callable[[], set[str]], expected: set[str]) -> None:
    """A busy machine may need longer than a person would wait."""
    await wait_until(lambda: offers() == expected)


@pytest.fixture
async def known(live_store: Store) -> str:
    """The id of a task in a store with a task type, a limit, a pipeline and a worker."""
    await live_store.declare(
        "code", {"draw": TaskSettings(), "service:x": TaskSettings()}, {}, {"story": (("draw",),)}
    )
    await live_store.limits.set("gpu", Slots(limit=1))
    await live_store.workers.register("studio-1")
    return (await live_store.submit_one(NewTask(task_type="draw"))).task_id


async def test_bash_offers_what_the_server_knows(known: str, shell: Shell, subtests: pytest.Subtests) -> None:
    script = await installed("bash", shell.home)
    for words, offered in [
        (("submit", ""), {"draw", "service:x"}),
        (("submit", "dr"), {"draw"}),
        (("submit", "draw", "--limit", ""), {"gpu="}),
        (("task", "show", ""), {known}),
        (("task", "list", "--task-type", "d"), {"draw"}),
        (("job", "submit", ""), {"story"}),
        (("limit", "status", "g"), {"gpu"}),
        (("workers", "drain", ""), {"studio-1"}),
    ]:
        with subtests.test(words=words):
            line = (words[0], *shell.where, *words[1:])
            await until_offered(partial(bash_offers, script, *line), offered)


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
async def test_fish_offers_what_the_server_knows(known: str, shell: Shell) -> None:
    script = await installed("fish", shell.home)
    where = shell.where
    await until_offered(partial(fish_offers, script, "submit", *where, "dr"), {"draw"})
    await until_offered(partial(fish_offers, script, "task", "show", *where, known[:9]), {known})
    assert "list" in fish_offers(script, "task", "")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
async def test_zsh_offers_what_the_server_knows(known: str, shell: Shell) -> None:
    folder = shell.home / "functions"
    folder.mkdir()
    (await installed("zsh", shell.home)).rename(folder / "_cyclopts_fairlead")
    (shell.home / ".zshrc").write_text(f"fpath+=({folder})\nautoload -U compinit\ncompinit -u\n")
    ours, theirs = pty.openpty()
    env = environment(shell.home) | {"TERM": "dumb"}
    with subprocess.Popen(["zsh", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=env) as zsh:
        os.close(theirs)
        shown = b""

        def read() -> None:
            nonlocal shown
            shown += os.read(ours, 65536)

        def has_completed() -> bool:
            os.write(ours, b"\t")  # again, if there was no answer in time
            return known[9:].encode() in shown

        asyncio.get_running_loop().add_reader(ours, read)
        os.write(ours, " ".join(("fairlead", "task", "show", *shell.where, known[:9])).encode())
        try:
            await wait_until(has_completed)
        finally:
            zsh.kill()
            asyncio.get_running_loop().remove_reader(ours)
            os.close(ours)


def offered(home: Path, line: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlead.cli", "--complete", line]
    return subprocess.run(command, capture_output=True, text=True, env=environment(home) | env, cwd=home)


def test_nothing_is_offered_started_or_said_where_nothing_runs(tmp_path: Path) -> None:
    for line in (
        "fairlead submit ",
        "fairlead submit --engine redis://127.0.0.1:1 ",
        "fairlead submit --engine nonsense ",
        "fairlead submit --url http://127.0.0.1:1 ",
        "fairlead submit --namespace 'open",
        "fairlead task show --data missing ",
    ):
        ran = offered(tmp_path, line)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", ""), line
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and that is all
        engine = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        ran = offered(tmp_path, f"fairlead task show --engine {engine} ", FAIRLEAD_COMPLETION_SECONDS="0.5")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


async def test_what_runs_in_the_data_folder_is_offered(tmp_path: Path) -> None:
    async with Fairlead(data=tmp_path / "data") as fl:
        await fl.store.limits.set("gpu", Slots(limit=1))

        def offers() -> bool:
            return offered(tmp_path, "fairlead limit status --data data ").stdout == "gpu\n"

        await wait_until(lambda: asyncio.to_thread(offers))
