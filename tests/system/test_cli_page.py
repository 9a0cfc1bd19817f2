"""The page about the command line: it names every command, and what it shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli import COMMANDS, app

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
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


@pytest.mark.timeout(120)
def test_what_the_page_shows_is_what_happens(tmp_path: Path) -> None:
    sessions = [
        step for session in SESSION.findall(PAGE) for step in re.split(r"^\$ ", session, flags=re.M)[1:]
    ]
    commands, answers = zip(*(step.split("\n", 1) for step in sessions), strict=True)
    (app_file,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    (tmp_path / "tasks.py").write_text(app_file)
    script = "\n".join(
        [*(f"echo {MARK}\n{command}" for command in commands), f"echo {MARK}", "kill %1", "wait"]
    )
    ran = subprocess.run(
        ["bash", "-m", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
    )
    said = ran.stdout.split(f"{MARK}\n")[1:-1]
    wrong = [
        f"$ {command}\n{happened}\n(the page says: {answer})"
        for command, answer, happened in zip(commands, answers, said, strict=True)
        if shown(happened) != shown(answer)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_on_the_page(name: str) -> None:
    assert re.search(rf"`fairlead {name}\b|\$ .*fairlead {name}\b|^## .*\b{name}\b", PAGE, re.M)
    command = app[name]
    groups = (
        [other for other in command if not other.startswith("-")] if command.default_command is None else []
    )
    for other in groups:
        assert re.search(rf"fairlead {name} {other}\b|`{name} {other}\b", PAGE), f"{name} {other}"
