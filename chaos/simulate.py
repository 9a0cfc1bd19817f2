"""The engine of the simulator against the rules, which look at everything: random small schedules.

Half of them are played from the start, half from a snapshot in the middle and by forks of it; half of each
with sub-queues that wait for several limits together, which otherwise takes many of them.
"""

import multiprocessing
import time
from collections import Counter

from chaos.options import Options
from chaos.results import keep
from fairlead.simulate import limits
from tests.simulate.comparing import compare_from_a_snapshot, compare_from_the_start

SCHEDULES = 20_000
AT_ONCE = 250


def run(options: Options) -> None:
    schedules = options.sized(SCHEDULES)
    print(f"simulate: seed {options.seed}, {schedules} schedules", flush=True)
    began = time.monotonic()
    firsts = [options.seed + first for first in range(0, schedules, AT_ONCE)]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        parts = pool.map(play, firsts, chunksize=1)
    # no count of differences: the first one ends the campaign, and names the seed of the schedule
    figures = {
        "seed": options.seed,
        "schedules": len(parts) * AT_ONCE,
        "seconds": round(time.monotonic() - began),
        "seen": dict(sorted(sum(parts, Counter()).items())),
    }
    print(figures)
    print(f"kept in {keep('simulate', figures)}")


def play(first: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in range(first, first + AT_ONCE):
        limits.MANY = 2 if seed & 2 else 8
        seen += (compare_from_a_snapshot if seed & 1 else compare_from_the_start)(seed)
    return seen
