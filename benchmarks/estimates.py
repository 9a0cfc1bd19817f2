"""placeholder"""

from benchmarks.bench import Bench
from benchmarks.figures import Outcome


async def run(bench: Bench) -> Outcome:
    return Outcome()
