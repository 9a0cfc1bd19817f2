"""The page on reliability shows the figures that were kept, and no others."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_kept_figures() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "reliability-page"))
    page = (ROOT / "docs" / "reliability.md").read_text()
    assert "recovery ms" in page
    assert script["filled"](page) == page, "run scripts/reliability-page"
