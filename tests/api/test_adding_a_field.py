"""The worked example of CONTRIBUTING.md: a new field of a task, added to a copy of the code."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.api.serving import serving

ROOT = Path(__file__).parents[2]
MOST_FILES = 5
EXAMPLE = re.compile(r"<!-- example: a new field -->\n\n```\n(.*?)```", re.DOTALL)
USE = """
import asyncio, sys
from fairlead import Fairlead

fl = Fairlead(sys.argv[1])

@fl.task
async def draw(prompt: str) -> str:
    return prompt

async def main() -> None:
    async with fl:
        task = await draw.submit("a robot", label="for Ann")
        print((await task.get()).label)

asyncio.run(main())
"""


def test_a_field_takes_five_files_and_is_returned_as_it_was_sent(tmp_path: Path) -> None:
    edits = example()
    assert len(edits) <= MOST_FILES, sorted(edits)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for file, lines in edits.items():
        if file.endswith(".py"):
            add(tmp_path / file, lines)
        else:
            assert (ROOT / file).is_file()
    changed = {"PYTHONPATH": str(tmp_path / "src")}
    folder = tmp_path / "data"
    folder.mkdir()
    with serving("", "example", folder, env=changed, prepare=import_the_copy) as gateway:
        command = [sys.executable, "-c", USE, gateway.url]
        shown = subprocess.run(
            command, env={**os.environ, **changed}, capture_output=True, text=True, timeout=60
        )
    assert shown.stdout == "for Ann\n", shown.stderr


def import_the_copy() -> None:
    """The process is forked from one that has imported the original."""
    os.execv(sys.executable, [sys.executable, "-m", "fairlead.cli", *sys.argv[1:]])


def example() -> dict[str, list[tuple[str, str]]]:
    """By file: in which class or table, and the line that is added there."""
    text = EXAMPLE.search((ROOT / "CONTRIBUTING.md").read_text())
    assert text
    edits: dict[str, list[tuple[str, str]]] = defaultdict(list)
    file = ""
    for line in text[1].splitlines():
        if line.startswith(" "):
            where, added = line.split(maxsplit=1)
            edits[file].append((where, added))
        else:
            file = line
    return edits


def add(path: Path, lines: list[tuple[str, str]]) -> None:
    for where, added in lines:
        source = path.read_text().splitlines()
        node = definition(where, ast.parse("\n".join(source)))
        if isinstance(node, ast.ClassDef):
            fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
            source.insert(fields[-1].end_lineno or 0, f"    {added}")
        else:  # a table on one line
            line = source[node.lineno - 1]
            source[node.lineno - 1] = f"{line[:-1]}, {added}{line[-1]}"
        path.write_text("\n".join(source))


def definition(name: str, tree: ast.Module) -> ast.stmt:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if name in (getattr(node, "name", None), *(getattr(target, "id", None) for target in targets)):
            return node
    raise AssertionError(f"{name} no longer exists: update the example")
