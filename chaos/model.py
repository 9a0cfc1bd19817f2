"""Oracle equality at length: random acts on the real store against the rules, the doctor after every step.

Workers of any profile come and go, and jobs run beside single tasks; every other round has tiers too.
"""

import asyncio
import multiprocessing
import time
from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from chaos.options import Options
from chaos.results import keep
from tests.model.fleet import Fleet
from tests.model.machine import Machine
from tests.model.tiered import Tiered
from tests.servers import running

HISTORIES_AT_ONCE = 200
MACHINES: tuple[type[Machine], ...] = (Fleet, Tiered)


def run(options: Options) -> None:
    seed, claims, jobs = options.seed, options.claims, options.jobs
    print(f"model: seed {seed}, {claims} claims in {jobs} processes", flush=True)
    began = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        parts = pool.starmap(play, [(seed + job, claims // jobs) for job in range(jobs)])
    seen: Counter[str] = sum((part[1] for part in parts), Counter())
    # no count of differences or breaches: the first one ends the campaign with the history that shows it
    figures = {
        "seed": seed,
        "processes": jobs,
        "claims": sum(part[0] for part in parts),
        "seconds": round(time.monotonic() - began),
        "transitions": dict(sorted(seen.items())),
    }
    print(figures)
    print(f"kept in {keep('model', figures)}")


def play(seed: int, claims: int) -> tuple[int, Counter[str]]:
    """Histories until this number of claims; raises with the shortest in which store and rules differ."""
    with running("valkey") as server, asyncio.Runner() as runner:
        Machine.url, Machine.loop = server.url, runner.get_loop()
        rounds = 0
        while Machine.claims < claims:
            machine = MACHINES[rounds % len(MACHINES)]
            # by this attribute hypothesis.seed() marks what it decorates
            machine._hypothesis_internal_use_seed = seed * 1_000_003 + rounds  # type: ignore[attr-defined]
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=HISTORIES_AT_ONCE,
                    stateful_step_count=60,
                    deadline=None,
                    database=None,
                    suppress_health_check=list(HealthCheck),
                    print_blob=True,
                ),
            )
            rounds += 1
            print(f"model: process with seed {seed}: {Machine.claims} claims", flush=True)
        return Machine.claims, Machine.seen
