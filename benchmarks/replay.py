"""The simulator: a trace of a million tasks, the first starts of a full queue, and a trace of a real gateway.

Processor time, because the machine may be shared. Nothing here speaks to a server.
"""

import itertools
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import gateway_trace
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Outcome
from fairlead.rules.limits import Slots
from fairlead.rules.values import Policy, Worker
from fairlead.simulate.engine import Simulation
from fairlead.simulate.values import PLACES, Kind, Snapshot, Task, Waiting

LIMITS, TYPES, USERS, SLOTS = 20, 87, 1_000, 10
LOAD = 0.95
FORKS, STARTS = 16, 500

#: Replays a trace in its own process, and says what that took.
COMMAND = """
import resource, sys
from fairlead.cli import run
code = run(["simulate", *sys.argv[1:], "--output", "json"])
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=sys.stderr)
sys.exit(code)
"""


async def run(bench: Bench) -> Outcome:
    outcome = Outcome()
    outcome.figures += _replay_of(10_000 if bench.quick else 1_000_000)
    queued = 2_000 if bench.quick else 100_000
    for case, kinds, limits in _queues():
        outcome.figures += _first_starts(f"{queued:,} queued, {case}", queued, kinds, limits)
    if bench.traces is None:
        outcome.notes.append("the trace of a gateway is left out: --traces FOLDER names where it is")
    else:
        outcome.figures += gateway_trace.figures(bench.traces)
    return outcome


def _replay_of(tasks: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        trace, config = Path(folder, "trace.csv"), Path(folder, "fairlead.toml")
        with trace.open("w") as file:
            file.writelines(_lines(tasks))
        limits = "".join(f"limit{number} = 2\n" for number in range(LIMITS))
        config.write_text(f"[worker]\ncapacity = {SLOTS}\n[limits]\n{limits}")
        command = [sys.executable, "-c", COMMAND, str(trace), "--config", str(config)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes = map(float, ran.stderr.split()[-2:])
    case = f"fairlead simulate, {tasks:,} tasks"
    return [
        Figure(case, "processor time", "s", [seconds]),
        Figure(case, "peak memory", "MB", [megabytes]),
    ]


def _lines(tasks: int) -> Iterator[str]:
    dice, now = random.Random(1), 0.0
    yield "arrival_seconds,duration_seconds,task_type,priority,user_id,limits\n"
    for _ in range(tasks):
        now += dice.expovariate(LOAD)
        priority = dice.choice(("high", "medium", "medium", "low", "low", "low"))
        what = f"type{dice.randrange(TYPES)},{priority},user{dice.randrange(USERS)}"
        yield f"{now:.3f},{dice.expovariate(1 / SLOTS):.3f},{what},limit{dice.randrange(LIMITS)}=1\n"


def _queues() -> Iterator[tuple[str, list[Kind], dict[str, Slots]]]:
    yield "1 type", [Kind("type")], {}
    types = [Kind(f"type{number}", needs=((f"limit{number}", 1),)) for number in range(TYPES)]
    yield (
        "87 types, each with a limit of 2",
        types,
        {name: Slots(2) for kind in types for name, _ in kind.needs},
    )
    customers = [Kind("type", needs=((f"customer{number}", 1), ("gpu", 1))) for number in range(10_000)]
    ones = {f"customer{number}": Slots(1) for number in range(10_000)}
    yield "10,000 customers on a limit of 10", customers, {**ones, "gpu": Slots(10)}


def _first_starts(case: str, queued: int, kinds: list[Kind], limits: dict[str, Slots]) -> list[Figure]:
    """Nobody ages within the horizon: promotions cost what they cost, starts are measured here."""
    snapshot = Snapshot(
        policy=Policy(low_to_medium=0, low_to_high=0, medium_to_high=0),
        workers=[Worker("worker", capacity=20)],
        limits=limits,
        waiting=list(_waiting(queued, kinds)),
    )
    began = time.process_time()
    simulation = Simulation(snapshot)
    prepared = time.process_time()
    forks = [simulation.fork() for _ in range(FORKS)]
    forked = time.process_time()
    started = sum(1 for fork in forks for _ in fork.starts(most=STARTS))
    ended = time.process_time()
    return [
        Figure(case, "prepare", "ms", [(prepared - began) * 1e3]),
        Figure(case, "fork", "ms", [(forked - prepared) * 1e3 / FORKS]),
        Figure(case, f"start, of the first {STARTS} of a fork", "us", [(ended - forked) * 1e6 / started]),
    ]


def _waiting(queued: int, kinds: list[Kind]) -> Iterator[Waiting]:
    dice, all_kinds = random.Random(1), itertools.cycle(kinds)
    for number in range(queued):
        place = dice.choice(PLACES)
        task = Task(
            number, next(all_kinds), duration=dice.randint(1_000, 30_000), account=f"user{number % 50}"
        )
        yield Waiting(task._replace(base=place.priority), place, number // 50 * 100, number + 1)
