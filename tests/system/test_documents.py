"""Documents are consistent: what they point to is there, and figures are those that were measured."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def sections_of(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_files_and_sections_that_documents_point_to_are_there() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]:
        for file, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
            target = page.parent / file if file else page
            assert target.exists(), f"{page.name} points to {file}"
            assert not anchor or anchor in sections_of(target), f"{page.name} points to {file}#{anchor}"


def test_the_figures_of_the_readme_are_those_of_the_page_about_performance() -> None:
    measured = (ROOT / "README.md").read_text().partition("Measured (")[2].partition("\n\n")[0]
    figures = re.findall(r"[\d.,]*\d times as fast", " ".join(measured.split()))
    assert len(figures) == 2
    performance = " ".join((ROOT / "docs/performance.md").read_text().split())
    assert [figure for figure in figures if figure not in performance] == []
