"""Every scenario of the benchmarks runs and leaves well-formed figures. How good they are is not asked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENARIOS = ("depth", "throughput", "memory", "pickup", "http", "live")

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_runs_and_writes_its_figures(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "benchmarks", scenario, "--quick", "--out", str(out)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
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


def test_fairlead_runs_beside_the_peers_and_every_figure_is_taken(tmp_path: Path) -> None:
    out = tmp_path / "peers.json"
    command = [sys.executable, "-m", "benchmarks", "peers", "--only", "fairlead", "--tasks", "300"]
    command += ["--quick", "--server", "valkey", "--out", str(out)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(out.read_text())
    assert [note for note in result["notes"] if "failed" in note] == []
    medians = {figure["measure"]: figure["median"] for figure in result["figures"]}
    assert {
        "submit one",
        "submit bulk",
        "drain",
        "memory",
        "pickup p50",
        "pickup p99",
        "idle",
    } <= medians.keys()
    assert {"high behind low", "low before high", "not back", "done twice"} <= medians.keys()
    assert medians["drain"] > 0
    assert [peer["name"] for peer in result["peers"]] == ["fairlead"]


def test_an_unknown_peer_is_refused_with_the_names_there_are() -> None:
    command = [sys.executable, "-m", "benchmarks", "peers", "--only", "sidekiq"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 2
    assert "'sidekiq'" in ran.stderr
    assert "celery" in ran.stderr


def test_an_unknown_scenario_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "speed"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=200, check=False).returncode != 0
