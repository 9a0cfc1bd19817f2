"""`python -m benchmarks [scenario ...]`: runs scenarios, shows their figures, keeps them as JSON."""

import asyncio
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter, validators
from rich.console import Console

from benchmarks import (
    breadth,
    dashboard,
    depth,
    estimates,
    floors,
    gateway_replay,
    history,
    http,
    live,
    memory,
    namespaces,
    pickup,
    policies,
    record,
    recording,
    scrape,
    simulator,
    storm,
    throughput,
    virtual_replay,
)
from benchmarks.bench import Bench
from benchmarks.breadth_scenes import BATCH
from benchmarks.peers import run as beside
from benchmarks.peers.scenarios import Sizes
from benchmarks.peers.scenarios import quick as quick_sizes
from benchmarks.peers.table import choose
from tests.servers import binary

SCENARIOS = {
    "depth": depth.run,
    "breadth": breadth.run,
    "storm": storm.run,
    "throughput": throughput.run,
    "memory": memory.run,
    "namespaces": namespaces.run,
    "pickup": pickup.run,
    "http": http.run,
    "live": live.run,
    "scrape": scrape.run,
    "dashboard": dashboard.run,
    "estimates": estimates.run,
    "simulator": simulator.run,
    "history": history.run,
    "recording": recording.run,
}
#: Only when they are named.
MORE = {
    "gateway_replay": gateway_replay.run,
    "virtual_replay": virtual_replay.run,
    "policies": policies.run,
    "floors": floors.run,
}
Name = Literal[
    "depth",
    "breadth",
    "storm",
    "throughput",
    "memory",
    "namespaces",
    "pickup",
    "http",
    "live",
    "scrape",
    "dashboard",
    "estimates",
    "simulator",
    "history",
    "recording",
    "gateway_replay",
    "virtual_replay",
    "policies",
    "floors",
]
RESULTS = Path(__file__).parent / "results"

app = App(name="benchmarks", help="Fairlead measured. Without names: every scenario.")


@app.default
def main(
    *scenarios: Name,
    quick: bool = False,
    server: str = "valkey",
    customers: Annotated[int | None, Parameter(validator=validators.Number(gte=BATCH))] = None,
    traces: Path | None = None,
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
    customers
        How many customers `breadth` has, each with its own limit. Default: 10,000.
    traces
        The folder of the traces that `gateway_replay`, `virtual_replay`, `policies` and `floors` play; none
        are shipped, and these run only when they are named. `simulator` plays one of them too, if given.
    out
        One file for all results, instead of one per scenario in benchmarks/results.
    note
        What a reader should know of the machine: "shared machine".
    """
    results = {}
    for name in scenarios or SCENARIOS:
        load_before = os.getloadavg()[0]
        outcome = asyncio.run((SCENARIOS | MORE)[name](Bench(server, quick, customers, traces)))
        record.show(Console(), name, outcome)
        results[name] = record.as_json(name, outcome, quick=quick, note=note, load_before=load_before)
        if out is None:
            record.write(RESULTS / f"{name}.json", results[name])
    if out is not None:
        record.write(out, results)


@app.command
def peers(
    *,
    only: str = "",
    tasks: int = 10_000,
    quick: bool = False,
    server: Literal["redis", "valkey"] = "redis",
    out: Path | None = None,
    note: str = "",
) -> None:
    """Fairlead beside other queues, which are installed into ~/.cache/fairlead-benchmarks when first wanted.

    Parameters
    ----------
    only
        Names with commas between them: fairlead,bound,bullmq,celery. Without: all.
    tasks
        How many are submitted in bulk.
    quick
        Short waits, one round: to see that it runs, not to learn anything.
    server
        redis (of the PATH) or valkey (the embedded one); it is started for the run.
    out
        Another file than benchmarks/results/peers.json.
    note
        What a reader should know of the machine: "shared machine".
    """
    try:
        chosen = choose(only)
        if tasks < 1:
            raise ValueError("--tasks: it takes at least 1")
        if not binary(server):
            raise ValueError("--server: there is no redis-server on the PATH; install it, or take valkey")
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        sys.exit(2)
    sizes, console, load_before = quick_sizes(tasks) if quick else Sizes(tasks), Console(), os.getloadavg()[0]
    outcome = asyncio.run(beside.run(Bench(server, quick), chosen, sizes, console))
    for title, part in beside.parts(outcome).items():
        record.show(console, title, part)
    for remark in outcome.notes:
        console.print(f"  {remark}", highlight=False)
    if not outcome.figures:
        sys.exit("nothing was measured, and nothing is kept; the lines above say why")
    result = record.as_json("peers", outcome, quick=quick, note=note, load_before=load_before)
    result |= {"sizes": asdict(sizes), "peers": [peer.as_json() for peer in chosen]}
    record.write(out or RESULTS / "peers.json", result)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that its servers end too
    app()
