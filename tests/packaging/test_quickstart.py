"""README.md and the quickstart, exactly as printed: from an empty folder, with `pip install`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import Page, play
from tests.wheel import ROOT, Wheel

README, QUICKSTART = Page("README.md"), Page("docs/quickstart.md")
OF_PIP = ("PIP_", "SSL_", "REQUESTS_")  # where it finds packages

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def installed(wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment that the commands of the page make, once for both pages."""
    folder = tmp_path_factory.mktemp("installed")
    block = QUICKSTART.install
    assert block and block.text == (README.install and README.install.text)
    ran = subprocess.run(
        ["bash", "-e", "-c", block.text],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name.startswith(OF_PIP)},
            "HOME": str(folder),
            "PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin",
            "PIP_FIND_LINKS": f"{os.environ.get('PIP_FIND_LINKS', '')} {wheel.dist}",
            "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
            "PIP_QUIET": "1",
            "PIP_NO_COMPILE": "1",  # only what is imported
        },
    )
    assert ran.returncode == 0, ran.stdout
    return folder / ".venv"


@pytest.mark.parametrize("page", [README, QUICKSTART], ids=["readme", "quickstart"])
def test_it_works_as_printed(page: Page, installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    play(page, f"{installed / 'bin'}:/usr/bin:/bin", home)
