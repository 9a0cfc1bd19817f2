"""`make cluster-demo`: namespaces on three shards, with what ran where; nothing is left of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "scripts" / "cluster-demo"
#: A namespace, its shard, how many tasks it ran, and how many each worker.
ROW = re.compile(r"^(team-\d) +(\d) at (127\.0\.0\.1:\d+) +(\d+) +(\d+) +(\d+)$", re.M)


@pytest.mark.long
@pytest.mark.timeout(120)
def test_the_demo_of_a_cluster_shows_what_runs_where_and_stops(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, DEMO, "--once"], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    rows = ROW.findall(ended.stdout)
    assert sorted(shard for _, shard, *_ in rows) == ["1", "2", "3"], ended.stdout
    for _, _, _, tasks, first, second in rows:
        assert int(tasks) == int(first) + int(second) == 30
    assert "every invariant holds" in ended.stdout
    assert ended.stdout.endswith("Stopped.\n")
    assert left_of([where for _, _, where, *_ in rows]) == []


def left_of(places: list[str]) -> list[str]:
    """Processes with the port of a shard in their command line."""
    ports = {place.rpartition(":")[2] for place in places}
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if ports & {port for word in words for port in re.findall(r"\d+", word)} and "cluster" in "".join(
            words
        ):
            found.append(" ".join(words))
    return found
