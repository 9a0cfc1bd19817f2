"""Pages are wrapped at 100 columns and avoid phrases that are never idiomatic English."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WIDTH = 100
MOST_PICTURE_BYTES = 3 << 20  # everybody who clones the repository fetches them
FOLDERS = ("docs", "examples", "tests")
BANNED = (
    "anew",
    "so many (at|may|units)",
    "goes on (with|then|where|until|by itself)",
    "stands? over",
    "(is|are|was|were|be) told",
    "tells? of",
    "has not (the|its)",
    "unless (told|you say) otherwise",
    "the very (same|one)",
)
NOT_IDIOMATIC = re.compile(rf"\b({'|'.join(BANNED)})\b".replace(" ", r"\s+"), re.IGNORECASE)


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]


def prose_of(page: Path) -> Iterator[tuple[str, str]]:
    """Every line outside code blocks, with its place."""
    in_code = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield f"{page.relative_to(ROOT)}:{number}", line


def test_prose_is_wrapped() -> None:
    lines = [(place, line) for page in pages() for place, line in prose_of(page)]
    assert len(lines) > 1000
    # A row of a table is one line, and a link cannot be split.
    too_long = [
        place
        for place, line in lines
        if len(line) > WIDTH and not line.lstrip().startswith("|") and " " in line.strip()
    ]
    assert too_long == []


def test_prose_avoids_phrases_that_are_not_idiomatic() -> None:
    texts = {page: "\n".join(line for _, line in prose_of(page)) for page in pages()}
    found = {
        str(page.relative_to(ROOT)): [match[0] for match in NOT_IDIOMATIC.finditer(text)]
        for page, text in texts.items()
    }
    assert {page: phrases for page, phrases in found.items() if phrases} == {}


def test_the_front_page_leads_to_every_page_and_shows_pictures_that_exist() -> None:
    front = (ROOT / "README.md").read_text()
    linked = set(re.findall(r"\]\((?!http)([^)#]+)", front)) | set(
        re.findall(r'src(?:set)?="([^"]+)"', front)
    )
    assert {link for link in linked if not (ROOT / link).exists()} == set()
    assert {str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")} - linked == {
        "docs/index.md"
    }
    pictures = [ROOT / link for link in linked if link.startswith("docs/pictures/")]
    assert len(pictures) == 3
    assert sum(picture.stat().st_size for picture in pictures) < MOST_PICTURE_BYTES
