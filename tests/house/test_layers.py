"""The import rule of the house holds, and the checker would notice if it did not."""

from pathlib import Path

import pytest

from tests.house.layers import breaches, unsafe_calls

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairlead"


def test_every_module_imports_downwards_only() -> None:
    found = [
        breach
        for path in sorted(PACKAGE.rglob("*.py"))
        for breach in breaches(path.relative_to(PACKAGE).as_posix(), path.read_text())
    ]
    assert found == []


def test_nothing_in_the_tree_unpickles_evaluates_or_runs_a_shell() -> None:
    folders = [ROOT / name for name in ("src", "tests", "benchmarks", "chaos", "examples", "scripts")]
    found = [
        breach
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        for breach in unsafe_calls(path.relative_to(ROOT).as_posix(), path.read_text())
    ]
    assert found == []


def test_the_checker_catches(subtests: pytest.Subtests) -> None:
    for path, source, complaint in [
        (
            "rules/choice.py",
            "from fairlead.store.store import Store",
            "rules imports store, which is above it",
        ),
        ("rules/choice.py", "from fairlead import simulate", "rules imports simulate, which is above it"),
        ("rules/choice.py", "def f():\n    import msgspec", "standard library only, but imports msgspec"),
        ("model/task.py", "from ..store import keys", "model imports store, which is above it"),
        ("store/limits.py", "from ..api.problems import X", "store imports api, which is above it"),
        ("store/limits.py", "import fairlead.worker.runner", "store imports worker, which is above it"),
        ("worker/runner.py", "from fairlead import Fenced", "imports Fenced from fairlead itself"),
        ("upkeep/reaper.py", "from redis.asyncio import Redis", "imports redis, which only store/ may"),
        ("store/store.py", "import fastapi", "imports fastapi, which only api/ may"),
        ("store/store.py", "import sqlite3", "imports sqlite3, which only history/ may"),
        ("misc.py", "", "misc has no layer"),
        ("store/store.py", "import time\nx = time.time()", "reads time.time"),
        ("store/store.py", "import time\nx = time.time_ns", "reads time.time_ns"),
        ("store/store.py", "from time import time_ns", "imports time.time_ns"),
        ("store/store.py", "import datetime\nx = datetime.datetime.now()", "reads datetime.now"),
        ("api/app.py", "import pickle", "imports pickle"),
        ("api/app.py", "from pickle import loads", "imports pickle"),
        ("api/app.py", "x = eval('1')", "calls eval"),
        ("api/app.py", "import subprocess\nsubprocess.run('ls', shell=True)", "runs a shell"),
    ]:
        with subtests.test(path=path, source=source, complaint=complaint):
            assert any(complaint in breach for breach in breaches(path, source))


def test_the_checker_lets_pass(subtests: pytest.Subtests) -> None:
    for path, source in [
        (
            "rules/choice.py",
            "import heapq\nfrom fairlead.model.task import Task\nfrom fairlead.rules.values import X",
        ),
        (
            "store/store.py",
            "from redis.asyncio import Redis\nfrom . import keys\nfrom fairlead import errors",
        ),
        (
            "cli/up.py",
            "from fairlead import __version__\nfrom fairlead.store.engine.engine import open_engine",
        ),
        ("clock.py", "import time\ndef now_ms(): return time.time_ns()"),
        ("store/store.py", "client.eval('return 1', 0)\nimport time\ntime.monotonic()"),
    ]:
        with subtests.test(path=path, source=source):
            assert breaches(path, source) == []
