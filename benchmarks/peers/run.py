"""Runs the scenarios for each queue in turn, round by round, so that other load affects all equally."""

import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console

from benchmarks.bench import Bench, describe
from benchmarks.figures import Figure, Outcome
from benchmarks.peers import scenarios
from benchmarks.peers.contender import Contender, Failed
from benchmarks.peers.environment import NotInstalled, install
from benchmarks.peers.scenarios import Seen, Sizes
from benchmarks.peers.table import Peer
from fairlead.store.address import make_client
from tests.servers import free_port

UNITS = {
    "submit one": "tasks/s",
    "submit bulk": "tasks/s",
    "drain": "tasks/s",
    "pickup p50": "ms",
    "pickup p99": "ms",
    "idle": "commands/s",
    "memory": "bytes/task",
    "worker CPU": "us/task",
    "Redis CPU": "us/task",
    "high behind low": "ms",
    "low before high": "tasks",
    "not back": "tasks",
    "done twice": "tasks",
    "all back": "s",
}
TABLES = {
    "peers: speed": ("submit one", "submit bulk", "drain", "pickup p50", "pickup p99"),
    "peers: cost": ("memory", "idle", "worker CPU", "Redis CPU"),
    "peers: order and recovery": ("high behind low", "low before high", "not back", "done twice", "all back"),
}
Scenario = Callable[[Contender, Sizes], Awaitable[Seen]]


async def run(bench: Bench, peers: list[Peer], sizes: Sizes, console: Console) -> Outcome:
    outcome = Outcome(notes=_notes(sizes))
    port = free_port()
    url = f"redis://127.0.0.1:{port}"
    options = ("--port", str(port), "--bind", "127.0.0.1", "--appendonly", "no")
    with tempfile.TemporaryDirectory(prefix="fl-peers-") as logs, bench.serve(*options):
        outcome.servers["all"] = await describe(url)
        async with make_client(url) as client:
            contenders = [
                Contender(peer, home, url, sizes.lease, Path(logs), client)
                for peer, home in _installed(peers, outcome, console)
            ]
            seen: dict[tuple[str, str], list[float]] = defaultdict(list)
            for contender, name, scenario in _plan(contenders, sizes):
                console.print(f"{contender.peer.name}: {name}", style="dim")
                try:
                    values = await scenario(contender, sizes)
                except (Failed, TimeoutError) as failure:
                    outcome.notes.append(f"{contender.peer.name}: {name} failed: {failure}")
                    continue
                for measure, value in values.items():
                    seen[contender.peer.name, measure].append(value)
    for (case, measure), values_ in seen.items():
        better = "more" if UNITS[measure] == "tasks/s" else "less"
        outcome.figures.append(Figure(case, measure, UNITS[measure], values_, better))  # type: ignore[arg-type]
    _relate(outcome, peers)
    return outcome


def _installed(peers: list[Peer], outcome: Outcome, console: Console) -> list[tuple[Peer, Path]]:
    there = []
    for peer in peers:
        try:
            with console.status(f"{peer.name}: installing"):
                there.append((peer, install(peer)))
        except NotInstalled as reason:
            outcome.notes.append(f"{peer.name}: left out, it could not be installed: {reason}")
    return there


def _plan(contenders: list[Contender], sizes: Sizes) -> list[tuple[Contender, str, Scenario]]:
    planned = [
        *[("throughput", scenarios.throughput)] * sizes.rounds,
        *[("pickup", scenarios.pickup)] * sizes.pickup_rounds,
        ("idle", scenarios.idle),
        ("priority", scenarios.priority),
        ("kill", scenarios.kill),
    ]
    return [
        (contender, name, scenario)
        for name, scenario in planned
        for contender in contenders
        if (name != "priority" or contender.peer.priorities) and (name != "kill" or contender.peer.leases)
    ]


def _notes(sizes: Sizes) -> list[str]:
    return [
        f"{sizes.singles:,} submits one by one, {sizes.tasks:,} in bulk; the drain is of all of them, from "
        "the first to the last record; one producer, one worker process",
        f"pickup: {sizes.pickup_rounds} rounds in turn of {sizes.pickups} single submits, each when the job "
        f"before it is done, at least {2 * scenarios.PAUSE[0] * 1e3:.0f} to "
        f"{2 * scenarios.PAUSE[1] * 1e3:.0f} ms apart",
        f"idle for {sizes.idle_seconds} s, commands within scripts counted",
        f"priority: {sizes.urgent} high behind {sizes.tasks:,} low; since the last high one was queued",
        f"kill: {sizes.killed_jobs:,} jobs of {sizes.killed_seconds * 1e3:.0f} ms, lease "
        f"{sizes.killed_lease} s (else {sizes.lease} s); not back: not done {sizes.give_up} s after the kill",
    ]


def _relate(outcome: Outcome, peers: list[Peer]) -> None:
    """Fairlead's figures in relation to what they are to be measured by, as far as those were taken."""
    cases = {(figure.case, figure.measure): figure for figure in outcome.figures}
    python = [peer.name for peer in peers if peer.is_python_peer]

    def relate(measure: str, others: list[str], label: str, target: str) -> None:
        rivals = [cases[name, measure] for name in others if (name, measure) in cases]
        if ("fairlead", measure) in cases and rivals:
            better = max if rivals[0].better == "more" else min
            rival = better(rivals, key=lambda figure: figure.median)
            if rival.median and rival.best:
                name = f"{measure}: Fairlead to {label.format(rival.case)}"
                outcome.compare(name, ("fairlead", measure), (rival.case, measure), target)

    relate("drain", python, "the fastest Python peer, {}", ">= 4")
    relate("drain", ["bullmq"], "{}", "moonshot 1")
    relate("submit bulk", ["bullmq"], "{}", ">= 1.5")
    relate("submit bulk", ["bound"], "{}", "moonshot 0.3")
    relate("submit one", python, "the fastest Python peer, {}", ">= 1")
    relate("submit one", ["bound"], "{}", "moonshot 0.9")
    relate("pickup p50", ["bound"], "{}", "<= 1.2")
    relate("pickup p99", ["bullmq"], "{}", "<= 1")
    relate("high behind low", ["huey"], "{}", "<= 1")


def parts(outcome: Outcome) -> dict[str, Outcome]:
    """The figures as tables that fit on a screen; the ratios below the last."""
    last = list(TABLES)[-1]
    return {
        title: Outcome(
            figures=[figure for figure in outcome.figures if figure.measure in measures],
            ratios=outcome.ratios if title == last else [],
        )
        for title, measures in TABLES.items()
    }
