"""The page about HTTP: what it shows is what happens, and it names every error there is."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.api import problems
from fairlead.api.protocol import HeadTooLarge, NotHttp
from fairlead.errors import FairleadError
from tests.servers import free_port
from tests.system.test_cli_page import MARK, SESSION, shown

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
AGE = re.compile(r'(?<="oldest_age_seconds":)[\d.]+')


@pytest.mark.timeout(120)
def test_what_the_page_shows_is_what_happens(tmp_path: Path) -> None:
    for program in ("curl", "jq"):
        if not shutil.which(program):
            if os.environ.get("CI"):
                pytest.fail(f"no {program}: install it")
            pytest.skip(f"no {program} on this machine")
    port = str(free_port())
    page = PAGE.replace("8000", port)
    sessions = [
        step for session in SESSION.findall(page) for step in re.split(r"^\$ ", session, flags=re.M)[1:]
    ]
    commands, answers = zip(*(step.split("\n", 1) for step in sessions), strict=True)
    start, *others = commands
    assert start.startswith("fairlead server ")
    start = start.replace("server ", f"server --port {port} ")
    ready = f"until curl --silent --output /dev/null http://127.0.0.1:{port}/readyz; do sleep 0.1; done"
    steps = [f"{start}\n{ready}", *others]
    script = "\n".join([*(f"echo {MARK}\n{step}" for step in steps), f"echo {MARK}", "kill %1", "wait"])
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
        if AGE.sub("<age>", shown(happened)) != AGE.sub("<age>", shown(answer))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_page_names_every_error_with_its_status() -> None:
    table = dict(re.findall(r"^\| (\d{3}) \| (.*?) \|", PAGE, re.M))
    kinds: list[type[FairleadError]] = [
        *problems.STATUS,
        *problems.HttpProblem.__subclasses__(),
        HeadTooLarge,
        NotHttp,
    ]
    for kind in kinds:
        assert f"`{kind.code}`" in table[str(problems.status_of(kind))], kind
