"""The page about the command line: it names every command, and what it shows is what happens."""

import re
from pathlib import Path

import pytest

from fairlead.cli import COMMANDS, app
from tests.pages import differences, played, steps_of

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()

#: What a reader waits for before the next command: the worker is there, or has gone with the engine it owns.
BETWEEN = {
    "fairlead worker ": "until grep -qs worker_started worker.log; do sleep 0.1; done",
    "fairlead workers drain ": "wait %1",
}


def with_pauses(command: str) -> str:
    return "\n".join([command, *(pause for start, pause in BETWEEN.items() if command.startswith(start))])


@pytest.mark.timeout(240)
def test_what_the_page_shows_is_what_happens(tmp_path: Path) -> None:
    (app_file,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    (tmp_path / "tasks.py").write_text(app_file)
    # once resumed, a job waits so long again: that is to be enough on a busy machine
    steps = steps_of(PAGE.replace("--max-wait 0.5", "--max-wait 5"))
    wrong = differences(steps, played([with_pauses(command) for command, _ in steps], tmp_path))
    assert not wrong, wrong


def test_every_command_is_on_the_page(subtests: pytest.Subtests) -> None:
    for name in COMMANDS:
        with subtests.test(name=name):
            assert re.search(rf"`fairlead {name}\b|\$ .*fairlead {name}\b|^## .*\b{name}\b", PAGE, re.M)
            command = app[name]
            groups = (
                [other for other in command if not other.startswith("-")]
                if command.default_command is None
                else []
            )
            for other in groups:
                assert re.search(rf"fairlead {name} {other}\b|`{name} {other}\b", PAGE), f"{name} {other}"
