"""The rooms of src/fairlead and the imports between them, drawn for ARCHITECTURE.md.

`python -m tests.house.rooms` draws the diagram there again.
"""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from tests.house.layers import LEVEL, imported

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairlead"
PAGE = ROOT / "ARCHITECTURE.md"
DIAGRAM = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.DOTALL)

Arrows = Mapping[str, frozenset[str]]


def rooms() -> list[str]:
    """Packages and modules directly in src/fairlead, from the top layer down."""
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    return sorted(found - {"__init__", "__main__", "__pycache__"}, key=lambda room: (LEVEL[room], room))


def arrows() -> Arrows:
    """The rooms that each room imports."""
    return {room: frozenset(_imports_of(room)) for room in rooms()}


def _imports_of(room: str) -> set[str]:
    folder = PACKAGE / room
    files = folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]
    modules = (
        module.split(".")
        for file in files
        for module in imported(ast.parse(file.read_text()), file.relative_to(PACKAGE).as_posix())
    )
    return {path[1] for path in modules if path[0] == "fairlead" and path[1:2] and path[1] in LEVEL} - {room}


def reduced(arrows: Arrows) -> Arrows:
    """Without the arrows that a longer way implies: the order is the same, the drawing is readable."""

    def reachable(room: str) -> set[str]:
        return set(arrows[room]).union(*(reachable(below) for below in arrows[room]))

    return {
        room: frozenset(below for below in targets if not any(below in reachable(via) for via in targets))
        for room, targets in arrows.items()
    }


def diagram() -> str:
    lines = [
        f"  {room} --> {below}" for room, targets in reduced(arrows()).items() for below in sorted(targets)
    ]
    return "\n".join(["flowchart TD", *lines, ""])


if __name__ == "__main__":
    PAGE.write_text(DIAGRAM.sub(lambda _: diagram(), PAGE.read_text(), count=1))
