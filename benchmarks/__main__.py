"""`python -m benchmarks [scenario ...]`: runs scenarios, shows their figures, keeps them as JSON."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Literal

from cyclopts import App
from rich.console import Console

from benchmarks import depth, memory, pickup, record, throughput
from benchmarks.bench import Bench

SCENARIOS = {"depth": depth.run, "throughput": throughput.run, "memory": memory.run, "pickup": pickup.run}
RESULTS = Path(__file__).parent / "results"

app = App(name="benchmarks", help="Fairlead measured. Without names: every scenario.")


@app.default
def main(
    *scenarios: Literal["depth", "throughput", "memory", "pickup"],
    quick: bool = False,
    server: str = "valkey",
    out: Path | None = None,
    note: str = "",
) -> None:
    """
    Parameters
    ----------
    quick
        Small sizes, one repetition: to see that it runs, not to learn anything.
    server
        valkey (the embedded one), redis (of the PATH), or the URL of a running server.
    out
        One file for all results, instead of one per scenario in benchmarks/results.
    note
        What a reader should know of the machine: "shared machine".
    """
    results = {}
    for name in scenarios or SCENARIOS:
        load_before = os.getloadavg()[0]
        outcome = asyncio.run(SCENARIOS[name](Bench(server, quick)))
        record.show(Console(), name, outcome)
        results[name] = record.as_json(name, outcome, quick=quick, note=note, load_before=load_before)
        if out is None:
            record.write(RESULTS / f"{name}.json", results[name])
    if out is not None:
        record.write(out, results)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that its servers end too
    app()
