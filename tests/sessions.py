"""Commands in a shell of their own, and what they print compared with what a page shows."""

import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, STDOUT

from tests.commands import read_all

MARK = "@@"
END = "kill $(jobs -p)\nwait"

#: Values that differ each time.
PASSING = (
    (re.compile(r"[\w.-]*[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "<time>"),
    (re.compile(r"flk_[a-z0-9]{8}_[\w-]{43}"), "<key>"),
    (re.compile(r"^[a-z0-9]{8}(?=  )", re.M), "<key id>"),  # in the first column of a table
    (re.compile(r"(?<=with fence )\d+"), "<fence>"),
    (re.compile(r"(?<=passed in )[\d.]+(?=s$)", re.M), "<seconds>"),
    (re.compile(r"\S+/(?=completion\.bash)"), ""),
    (re.compile(r"\b\d\d:\d\d:\d\d UTC"), "<clock>"),
    (re.compile(r"\b(\d+\.)?\d+ (s|min|h|d)\b"), "<age>"),
    (re.compile(r"^\[\d\]\+ .*\n", re.M), ""),  # a terminal reports that a job has ended
    (re.compile(r" +$", re.M), ""),
    (re.compile(r" +"), " "),
)

Step = tuple[str, str]  # a command, and its output on the page


def sessions(text: str) -> list[Step]:
    """The commands of shell sessions, each with its output."""
    steps = [step.partition("\n") for step in re.split(r"^\$ ", text, flags=re.M)[1:]]
    return [(command, answer) for command, _, answer in steps]


def played(
    commands: Sequence[str],
    home: Path,
    path: str,
    *,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 230,
    columns: int | None = None,
) -> list[str]:
    """The output of each, in one shell; those that keep running in the background are ended.

    With `columns` it goes to a terminal of that width, which knows no colours.
    """
    script = "\n".join([*(f"echo {MARK}\n{command}" for command in commands), f"echo {MARK}", END])
    environment = {"HOME": str(home), "PATH": path, **(env or {})}
    if columns is None:
        written = _in_pipe(script, folder or home, environment, timeout)
    else:
        terminal = {"COLUMNS": str(columns), "TERM": "dumb"}
        written = _on_terminal(script, folder or home, environment | terminal)
    return written.split(f"{MARK}\n")[1:-1]


def _in_pipe(script: str, folder: Path, env: dict[str, str], timeout: float) -> str:
    command = ["bash", "-m", "-c", script]
    with subprocess.Popen(
        command, stdout=PIPE, stderr=STDOUT, text=True, cwd=folder, env=env, start_new_session=True
    ) as shell:
        try:
            return shell.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            _kill_session(shell.pid)
            raise AssertionError(f"after {timeout:g} s still running:\n{shell.communicate()[0]}") from None


def _kill_session(session: int) -> None:
    """The shell, and what it has started in the background."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):
            if os.getsid(int(folder.name)) == session:
                os.kill(int(folder.name), signal.SIGKILL)


def _on_terminal(script: str, folder: Path, env: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    # its own session, of which this is the terminal: the shell controls its jobs
    command = ["setsid", "--ctty", "--wait", "bash", "-m", "-c", f"exec < /dev/null\n{script}"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=env):
        os.close(theirs)
        return read_all(ours).replace("\r\n", "\n")


def shown(text: str) -> str:
    for pattern, word in PASSING:
        text = pattern.sub(word, text)
    return text.strip()


def differences(
    steps: Sequence[Step], printed: Sequence[str], read: Callable[[str], str] | None = None
) -> str:
    read = read or shown
    return "\n".join(
        f"$ {command}\n{happened}\n(the page says: {answer})"
        for (command, answer), happened in zip(steps, printed, strict=True)
        if read(happened) != read(answer)
    )
