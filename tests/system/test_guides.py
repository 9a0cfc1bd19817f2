"""The guides work as printed: from an empty folder, with the wheel and what they install."""

import re
from pathlib import Path

import pytest

from tests.pages import Page, all_blocks, play
from tests.programs import need
from tests.wheel import Wheel

PAGES = [
    Page("docs/tasks.md"),
    Page("docs/limits.md"),
    Page("docs/namespaces.md"),
    Page("docs/priorities.md"),
    Page("docs/estimates.md"),
    Page("docs/tiers.md"),
    Page("docs/fairness.md"),
    Page("docs/pipelines.md"),
    Page("docs/files.md"),
    Page("docs/slots.md"),
    Page("docs/periodic.md"),
    Page("docs/progress.md"),
    Page("docs/history.md"),
    Page("docs/testing.md"),
    Page("docs/simulator.md"),
    Page("docs/workers.md"),
    Page("docs/any-language.md"),
    Page("docs/migrating.md"),
    Page("docs/monitoring.md"),
    Page("docs/security.md"),
    Page("docs/recovery.md"),
    Page("docs/settings.md"),
]


@pytest.mark.long
@pytest.mark.timeout(150)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: Path(page.name).stem)
def test_a_page_works_as_printed(page: Page, wheel: Wheel, tmp_path: Path) -> None:
    need(*(program for program in ("curl", "jq") if re.search(rf"^\$ .*\b{program}\b", page.text, re.M)))
    home = tmp_path / "home"
    home.mkdir()
    play(page, wheel, home, timeout=120)


def test_the_code_of_other_queues_is_python() -> None:
    others = [block for block in all_blocks(Page("docs/migrating.md").text) if "title" in block.kind]
    assert len(others) == 3
    for other in others:
        if other.kind.startswith("python"):
            compile(other.text, "other", "exec")
