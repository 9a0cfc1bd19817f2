"""Pages with sessions of a shell: they are played, and what happens is compared with what the page says."""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

SESSION = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
MARK = "@@"

#: What is another one each time.
PASSING = (
    (re.compile(r"[\w.-]*[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "<time>"),
    (re.compile(r"flk_[a-z0-9]{8}_[\w-]{43}"), "<key>"),
    (re.compile(r"^[a-z0-9]{8}(?=  )", re.M), "<key id>"),  # in the first column of a table
    (re.compile(r"\S+/(?=completion\.bash)"), ""),
    (re.compile(r" +"), " "),
)


def shown(text: str) -> str:
    for pattern, word in PASSING:
        text = pattern.sub(word, text)
    return text.strip()


def steps_of(page: str) -> list[tuple[str, str]]:
    """Every command, with what the page says it prints."""
    sessions = "".join(SESSION.findall(page))
    steps = [step.partition("\n") for step in re.split(r"^\$ ", sessions, flags=re.M)[1:]]
    return [(command, answer) for command, _, answer in steps]


def played(commands: Sequence[str], home: Path) -> list[str]:
    """What each printed, in one shell; the first one goes on in the background, and is ended."""
    script = "\n".join(
        [*(f"echo {MARK}\n{command}" for command in commands), f"echo {MARK}", "kill %1", "wait"]
    )
    ran = subprocess.run(
        ["bash", "-m", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=230,
        cwd=home,
        env={"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
    )
    return ran.stdout.split(f"{MARK}\n")[1:-1]


def differences(
    steps: Sequence[tuple[str, str]], said: Sequence[str], read: Callable[[str], str] = shown
) -> str:
    return "\n".join(
        f"$ {command}\n{happened}\n(the page says: {answer})"
        for (command, answer), happened in zip(steps, said, strict=True)
        if read(happened) != read(answer)
    )
