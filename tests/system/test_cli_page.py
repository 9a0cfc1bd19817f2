"""The page about the command line: it names every command, and its examples work as shown."""

import re
from pathlib import Path

import pytest

from fairlead.cli import COMMANDS, app
from tests.pages import Page, play
from tests.wheel import Wheel

PAGE = Page("docs/cli.md")
COLUMNS = 80

#: What a reader waits for before the next command: the worker has started, or has ended with its engine.
BETWEEN = {
    "fairlead worker ": "until grep -qs worker_started worker.log; do sleep 0.1; done",
    "fairlead workers drain ": "wait %1",
}


def with_pauses(command: str) -> str:
    return "\n".join([command, *(pause for start, pause in BETWEEN.items() if command.startswith(start))])


@pytest.mark.timeout(240)
def test_the_examples_of_the_page_work_as_shown(wheel: Wheel, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    play(PAGE, wheel, home, between=with_pauses, columns=COLUMNS)


def test_every_command_is_on_the_page(subtests: pytest.Subtests) -> None:
    for name in COMMANDS:
        with subtests.test(name=name):
            assert re.search(rf"`fairlead {name}\b|\$ .*fairlead {name}\b|^## .*\b{name}\b", PAGE.text, re.M)
            command = app[name]
            groups = (
                [other for other in command if not other.startswith("-")]
                if command.default_command is None
                else []
            )
            for other in groups:
                assert re.search(rf"fairlead {name} {other}\b|`{name} {other}\b", PAGE.text), (
                    f"{name} {other}"
                )
