"""Every block of code on every page is run by a test, or one list says why it is not."""

import re
from pathlib import Path

from tests.pages import ELSEWHERE, NOT_RUN, Page, all_blocks
from tests.wheel import ROOT

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
#: A test says so by `Page("docs/cli.md")`; the one of the examples finds all of them by itself.
NAMED = re.compile(r'Page\("([^"{]+)"\)')


def names() -> set[str]:
    return {str(page.relative_to(ROOT)) for page in PAGES}


def played() -> set[str]:
    tests = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    named = {name for text in tests for name in NAMED.findall(text)}
    return named | {name for name in names() if name.startswith("examples/")}


def test_every_page_with_blocks_is_played() -> None:
    assert {name for name in names() if Page(name).blocks} - played() == set()


def test_every_exception_is_of_a_block_that_exists() -> None:
    exceptions = [(name, start) for name, start, _ in (*NOT_RUN, *ELSEWHERE)]
    blocks = {name: all_blocks((ROOT / name).read_text()) for name, _ in exceptions}
    assert all(any(block.text.startswith(start) for block in blocks[name]) for name, start in exceptions)


def test_what_is_run_elsewhere_is_run_there() -> None:
    assert all(Path(name).name in (ROOT / test).read_text() for name, _, test in ELSEWHERE)
