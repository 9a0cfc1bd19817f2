"""Every scenario runs in its small size and leaves well-formed figures. Their values are not checked.

`make bench` runs these first; one scenario is a part of the suite (`tests/system/test_benchmarks.py`).
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SCENARIOS = (
    *("throughput", "memory", "namespaces", "pickup", "http", "live", "scrape", "dashboard"),
    *("estimates", "simulator", "history", "recording"),
)
REPLAYS = ("gateway_replay", "virtual_replay")
ORDER = "better priorities started first"  # among tasks that are due at once: reported, not required yet

pytestmark = pytest.mark.timeout(240)


def run(scenario: str, folder: Path) -> dict[str, Any]:
    """What a scenario leaves when it runs in its small size."""
    out = folder / "out.json"
    command = [sys.executable, "-m", "benchmarks", scenario, "--quick", "--out", str(out)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr
    result: dict[str, Any] = json.loads(out.read_text())[scenario]
    assert result["quick"] is True
    assert {"date", "machine", "versions", "servers", "repeated", "ratios", "notes"} <= result.keys()
    assert {"cpu", "cores", "memory", "kernel"} <= result["machine"].keys()
    assert result["figures"]
    for figure in result["figures"]:
        assert figure["repeated"] >= 1
        assert isinstance(figure["median"], float)
        assert figure["better"] in ("less", "more")
    return result


def medians(result: dict[str, Any]) -> dict[str, dict[str, float]]:
    """By case and measure."""
    cases: dict[str, dict[str, float]] = {}
    for figure in result["figures"]:
        cases.setdefault(figure["case"], {})[figure["measure"]] = figure["median"]
    return cases


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_runs_and_writes_its_figures(scenario: str, tmp_path: Path) -> None:
    run(scenario, tmp_path)


def test_breadth_compares_every_case_with_one_type_without_a_limit(tmp_path: Path) -> None:
    result = run("breadth", tmp_path)
    assert result["refused"] == {}
    cases = medians(result)
    assert len(cases) == 8
    acts = {act + size for act in ("submit", "claim", "complete") for size in ("", ", of 100")}
    measured = acts | {"explain", "limit status"}
    for case, values in cases.items():
        assert measured <= values.keys(), case
        assert all(value > 0 for value in values.values()), case
    assert "bytes per task, event included" in cases["1 type"]
    assert {ratio["name"] for ratio in result["ratios"]} == {
        f"{measure}: {case} to 1 type" for measure in measured for case in cases if case != "1 type"
    }


def test_in_every_storm_everything_is_accepted_and_starts(tmp_path: Path) -> None:
    result = run("storm", tmp_path)
    assert result["refused"] == {}
    cases = medians(result)
    assert len(cases) == 11
    for case, values in cases.items():
        assert {"slowest act", "acts over 20 ms"} <= values.keys(), case
    assert {check["case"] for check in result["checks"]} == cases.keys()
    broken = [check for check in result["checks"] if not check["held"] and check["name"] != ORDER]
    assert broken == []
    assert [check["case"] for check in result["checks"] if check["name"] == ORDER] == [
        "2,000 tasks due at once"
    ]


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


@pytest.mark.parametrize("scenario", [*REPLAYS, "floors"])
def test_a_replay_without_traces_says_what_is_missing(scenario: str) -> None:
    command = [sys.executable, "-m", "benchmarks", scenario]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert (
        ran.stderr
        == f"{scenario}: no traces are shipped with Fairlead: name a folder of them with --traces\n"
    )


@pytest.mark.parametrize("scenario", REPLAYS)
def test_a_trace_is_replayed(scenario: str, tmp_path: Path) -> None:
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    lines += [f"2023-11-16 18:15:{second:02d}.5000000,400,20" for second in range(3, 15)]
    with gzip.open(tmp_path / "AzureLLMInferenceTrace_conv.csv.gz", "wt") as file:
        file.write("\n".join(lines))
    command = [sys.executable, "-m", "benchmarks", scenario, "--quick", "--traces", str(tmp_path)]
    out = tmp_path / "out.json"
    ran = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    result = json.loads(out.read_text())[scenario]
    assert {check["held"] for check in result["checks"]} == {True}
    assert medians(result)["Azure 2023: order"]["starts as in the simulation"] > 0
