"""Files stay small enough to read in one go, and nothing is left for later without a record."""

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
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
