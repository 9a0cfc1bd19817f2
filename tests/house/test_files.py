"""Files stay small enough to read in one go, no comment bends a line, and nothing is left for later."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MOST_LINES = {".py": 350, ".lua": 220}


@pytest.mark.parametrize("ending", MOST_LINES)
def test_files_are_short(ending: str) -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in SOURCE.rglob(f"*{ending}")}
    too_long = {str(path.relative_to(SOURCE)): n for path, n in lengths.items() if n > MOST_LINES[ending]}
    assert too_long == {}


def test_nothing_is_marked_to_be_done_later() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b")
    files = [path for path in SOURCE.rglob("*") if path.suffix in (".py", ".lua")]
    assert [str(path.relative_to(SOURCE)) for path in files if marks.search(path.read_text())] == []


def test_no_comment_hangs_on_a_closing_bracket() -> None:
    # The formatter splits a line that its comment makes too long: such a comment goes above the line.
    hanging = re.compile(r"^ *[)\]}][^\n#\"']*  # (?!type:|noqa)", re.MULTILINE)
    files = [path for name in ("src", "tests", "benchmarks", "chaos") for path in (ROOT / name).rglob("*.py")]
    files += (ROOT / "docs").rglob("*.md")
    assert [str(path.relative_to(ROOT)) for path in files if hanging.search(path.read_text())] == []
