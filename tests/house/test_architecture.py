"""ARCHITECTURE.md and CONTRIBUTING.md show the house as it is."""

import re

import pytest

from tests.house import rooms
from tests.house.rooms import ROOT

ROW = re.compile(r"^\| `(\w+)/?` \|", re.MULTILINE)
#: `store/keys.py`, `src/fairlead/store/lua/`, `tests/house/`: not `GET /tasks`, `a/b` of an example
PATH = re.compile(r"`([\w./-]+/[\w./-]*)`")


def test_the_diagram_shows_the_imports_between_rooms() -> None:
    drawn = rooms.DIAGRAM.search(rooms.PAGE.read_text())
    assert drawn
    assert drawn[0] == rooms.diagram(), "draw it again: python -m tests.house.rooms"


def test_every_room_is_described_once() -> None:
    assert sorted(ROW.findall(rooms.PAGE.read_text())) == sorted(rooms.rooms())


def test_the_arrows_keep_the_order_of_the_imports() -> None:
    chain = {"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset("d"), "d": frozenset[str]()}
    assert rooms.reduced(chain) == {**chain, "a": frozenset("b")}


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_on_the_page_exists(page: str) -> None:
    named = PATH.findall((ROOT / page).read_text())
    assert named
    missing = [path for path in named if not any((base / path).exists() for base in (ROOT, rooms.PACKAGE))]
    assert missing == []
