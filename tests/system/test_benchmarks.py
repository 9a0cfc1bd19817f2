"""A scenario of the benchmarks runs, and what none can do is refused. `make bench` tries all scenarios."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.test_scenarios import ROOT, run

pytestmark = pytest.mark.timeout(240)


def test_a_scenario_runs_and_writes_its_figures(tmp_path: Path) -> None:
    run("depth", tmp_path)


def test_an_unknown_peer_is_refused_with_the_names_there_are() -> None:
    command = [sys.executable, "-m", "benchmarks", "peers", "--only", "sidekiq"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 2
    assert "'sidekiq'" in ran.stderr
    assert "celery" in ran.stderr


def test_an_unknown_scenario_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "speed"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=200, check=False).returncode != 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("breadth", "--customers", "5"), "Must be >= 100"),
        (("storm", "--server", "redis://127.0.0.1:1"), "needs a private server"),
    ],
)
def test_an_unsupported_option_of_a_scenario_is_refused_with_the_reason(
    arguments: tuple[str, ...], reason: str
) -> None:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode != 0
    assert reason in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
