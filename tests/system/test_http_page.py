"""The page about HTTP: its examples work as shown, and it names every error."""

import re
from pathlib import Path

import pytest

from fairlead.api import problems
from fairlead.api.problems import HeadTooLarge
from fairlead.errors import FairleadError
from tests.pages import Page, play
from tests.programs import need
from tests.refusals import REFUSALS
from tests.sessions import shown
from tests.wheel import Wheel

PAGE = Page("docs/http.md")
AGE = re.compile(r'(?<="oldest_age_seconds":)[\d.]+')
FENCE = re.compile(r'(?<="fence":)\d{16}')
READY = "until curl --silent --output /dev/null 127.0.0.1:$FAIRLEAD_SERVER__PORT/readyz; do sleep 0.1; done"


def with_pauses(command: str) -> str:
    return f"{command}\n{READY}" if command.startswith("fairlead server ") else command


def same_each_time(text: str) -> str:
    return FENCE.sub("<fence>", AGE.sub("<age>", shown(text)))


@pytest.mark.timeout(240)
def test_the_examples_of_the_page_work_as_shown(wheel: Wheel, tmp_path: Path) -> None:
    need("curl", "jq")
    home = tmp_path / "home"
    home.mkdir()
    play(PAGE, wheel, home, between=with_pauses, read=same_each_time)


def test_the_page_names_every_error_with_its_status() -> None:
    rows = re.findall(r"^\| (\d{3}) \| (.*?) \|", PAGE.text, re.M)
    kinds: list[type[FairleadError]] = [
        *REFUSALS,
        *problems.HttpProblem.__subclasses__(),
    ]
    assert HeadTooLarge in kinds
    for kind in kinds:
        status = str(kind.http_status)
        assert any(f"`{kind.code}`" in codes for of, codes in rows if of == status), kind
