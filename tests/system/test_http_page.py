"""The page about HTTP: what it shows is what happens, and it names every error there is."""

import os
import re
import shutil
from pathlib import Path

import pytest

from fairlead.api import problems
from fairlead.api.http.problems import HeadTooLarge
from fairlead.errors import FairleadError
from tests.pages import differences, played, shown, steps_of
from tests.servers import free_port

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
AGE = re.compile(r'(?<="oldest_age_seconds":)[\d.]+')
FENCE = re.compile(r'(?<="fence":)\d{16}')


@pytest.mark.timeout(240)
def test_what_the_page_shows_is_what_happens(tmp_path: Path) -> None:
    for program in ("curl", "jq"):
        if not shutil.which(program):
            if os.environ.get("CI"):
                pytest.fail(f"no {program}: install it")
            pytest.skip(f"no {program} on this machine")
    port = str(free_port())
    steps = steps_of(PAGE.replace("8000", port))
    start, *others = [command for command, _ in steps]
    assert start.startswith("fairlead server ")
    start = start.replace("server ", f"server --port {port} ")
    ready = f"until curl --silent --output /dev/null http://127.0.0.1:{port}/readyz; do sleep 0.1; done"
    said = played([f"{start}\n{ready}", *others], tmp_path)
    wrong = differences(steps, said, lambda text: FENCE.sub("<fence>", AGE.sub("<age>", shown(text))))
    assert not wrong, wrong


def test_the_page_names_every_error_with_its_status() -> None:
    rows = re.findall(r"^\| (\d{3}) \| (.*?) \|", PAGE, re.M)
    kinds: list[type[FairleadError]] = [
        *problems.STATUS,
        *problems.HttpProblem.__subclasses__(),
    ]
    assert HeadTooLarge in kinds
    for kind in kinds:
        status = str(problems.status_of(kind))
        assert any(f"`{kind.code}`" in codes for of, codes in rows if of == status), kind
