"""What docs/frameworks.md shows is run here: the files, the commands and the cells exactly as printed."""

import re
from pathlib import Path

import pytest

from tests.pages import Page, play
from tests.wheel import Wheel

#: What a reader waits for before the next command: the worker has started, or the server listens.
LISTENS = "until (: < /dev/tcp/127.0.0.1/{port}) 2> /dev/null; do sleep 0.1; done"
STARTED = "until grep -qs worker_started worker.log; do sleep 0.1; done"


def with_pauses(command: str) -> str:
    if port := re.search(r"(?:127\.0\.0\.1:|--port )(\d+).*&$", command):
        return f"{command}\n{LISTENS.format(port=port[1])}"
    return f"{command}\n{STARTED}" if command.startswith("fairlead worker ") else command


@pytest.mark.timeout(240)
def test_the_examples_of_the_page_work_as_shown(wheel: Wheel, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    play(Page("docs/frameworks.md"), wheel, home, between=with_pauses)
