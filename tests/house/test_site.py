"""The documentation as a site: it builds without a warning, and contains every page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.long
@pytest.mark.timeout(240)
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    """mkdocs checks the links between the pages, and the names in the Python reference."""
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert (built.returncode, built.stderr) == (0, "")
    for page in PAGES:
        html = tmp_path / "site" / page.relative_to(ROOT / "docs").with_suffix(".html")
        assert "http://fonts" not in html.read_text() and "https://fonts" not in html.read_text()


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES if not re.match(r"\d", page.name)}
    assert set(re.findall(r"\S+\.md$", navigation, re.M)) == pages


def test_the_index_of_decisions_is_complete() -> None:
    index = (ROOT / "docs/decisions/index.md").read_text()
    listed = re.findall(r"^- \[(\d+)\]\((\S+)\): (.*(?:\n  .*)*)", index, re.M)
    titles = {page.name: page.read_text().splitlines()[0] for page in PAGES if re.match(r"\d", page.name)}
    shown = {file: f"# {number}: {' '.join(title.split())}" for number, file, title in listed}
    assert shown == titles
