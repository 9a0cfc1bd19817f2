"""Every scenario of the benchmarks runs and leaves well-formed figures. How good they are is not asked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENARIOS = ("depth", "throughput", "memory", "pickup")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_runs_and_writes_its_figures(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "benchmarks", scenario, "--quick", "--out", str(out)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(out.read_text())[scenario]
    assert result["quick"] is True
    assert {"date", "machine", "versions", "servers", "repeated", "ratios", "notes"} <= result.keys()
    assert {"cpu", "cores", "memory", "kernel"} <= result["machine"].keys()
    assert result["figures"]
    for figure in result["figures"]:
        assert figure["repeated"] >= 1
        assert isinstance(figure["median"], float)
        assert figure["better"] in ("less", "more")


def test_an_unknown_scenario_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "speed"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=50, check=False).returncode != 0
