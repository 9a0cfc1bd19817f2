"""What mypy and pyright report about code that uses Fairlead: every marked line, and no other."""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import get_overloads, get_type_hints

import pytest

from fairlead.app.options import Options
from fairlead.app.task_call import TaskCall

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).parent / "samples"
MARK = re.compile(r"# wrong: ([\w-]+), (\w+)$")

Errors = dict[tuple[str, int], set[str]]  # by file and line


def marked(group: int) -> Errors:
    """What the samples announce; `-`: this checker reports nothing."""
    lines = [
        (path.name, number, MARK.search(line))
        for path in SAMPLES.glob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
    ]
    return {(name, number): {mark[group]} for name, number, mark in lines if mark and mark[group] != "-"}


def run(*command: str, **env: str) -> str:
    """A checker on all samples; it exits with 1 because of the mistakes."""
    ran = subprocess.run(
        [sys.executable, "-m", *command], env=os.environ | env, cwd=SAMPLES, capture_output=True, text=True
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.long
@pytest.mark.timeout(240)
def test_mypy_finds_every_mistake_without_a_plugin() -> None:
    cache = ROOT / ".mypy_cache" / "samples"
    options = ["--strict", "--config-file=", f"--cache-dir={cache}", "--output=json"]
    found: Errors = defaultdict(set)
    for line in run("mypy", *options, ".", MYPYPATH=str(ROOT / "src")).splitlines():
        error = json.loads(line)
        if error["severity"] == "error":
            found[error["file"], error["line"]].add(error["code"])
    assert found == marked(1)


@pytest.mark.long
@pytest.mark.timeout(240)
def test_pyright_finds_every_mistake_in_strict_mode(tmp_path: Path) -> None:
    settings = {
        "include": [str(SAMPLES)],
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    options = ["--project", str(tmp_path), "--pythonpath", sys.executable, "--outputjson"]
    found: Errors = defaultdict(set)
    for error in json.loads(run("basedpyright", *options))["generalDiagnostics"]:
        where = Path(error["file"]).name, error["range"]["start"]["line"] + 1
        found[where].add(error.get("rule", error["message"]))
    assert found == marked(2)


def test_every_option_has_an_overload_with_its_type() -> None:
    _, *with_option = get_overloads(TaskCall.__call__)
    hints = [get_type_hints(overload) for overload in with_option]
    required = {name: hint for one in hints for name, hint in one.items()}
    assert {name: required.get(name) for name in get_type_hints(Options)} == get_type_hints(Options)
