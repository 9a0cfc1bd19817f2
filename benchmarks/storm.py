"""Much at once, of every kind: the slowest act of each storm, and whether everything starts afterwards.

No act may block the server for 20 ms, because all others wait meanwhile: the slow log names those that do.
"""

from collections import defaultdict
from collections.abc import Sequence

from benchmarks import slowlog
from benchmarks.bench import NO_AOF, WORKER, Bench, describe, register, small_task
from benchmarks.figures import Figure, Outcome
from benchmarks.storms import STORMS, Storm
from fairlead.errors import FairleadError
from fairlead.settings import Slots

SLOW_US = 20_000
QUICK_PART = 50  # of every size


async def run(bench: Bench) -> Outcome:
    bench.require_private_server()
    outcome = Outcome(
        notes=[
            "slowest act: server time by the slow log, which lists acts over 20 ms; 0: there was none",
            "slowest round trip: as the client measured it; a storm is measured after its preparation",
        ]
    )
    for name, (strike, count) in STORMS.items():
        size = max(count // QUICK_PART, 2) if bench.quick else count
        with bench.serve(*NO_AOF, *slowlog.log_above(SLOW_US)) as url:
            outcome.servers["every storm"] = await describe(url)
            await _warm_up(bench, url)
            async with bench.store(url) as store:
                storm = Storm(name.format(f"{size:,}"), store, url)
                try:
                    await strike(storm, size)
                except FairleadError as problem:
                    outcome.refused[storm.name] = f"{problem.code}: {problem}"
                await _keep(outcome, storm)
    return outcome


async def _warm_up(bench: Bench, url: str) -> None:
    """The server loads the functions of the acts, which takes longer than the acts do."""
    async with bench.store(url) as store:
        await store.submit_one(small_task())
        await store.limits.set("spare", Slots(limit=1))
        await register(store)
        await store.claim(WORKER)
        await store.workers.heartbeat(WORKER)
        await store.promote()
        await store.expire()


async def _keep(outcome: Outcome, storm: Storm) -> None:
    slow = await slowlog.take(storm.store.connection.client)
    slowest = max((one.us for one in slow), default=0) / 1000
    values: dict[str, tuple[str, float]] = {
        "slowest act": ("ms", slowest),
        "acts over 20 ms": ("acts", float(len(slow))),
    }
    if storm.round_trips:
        values["slowest round trip"] = "ms", max(storm.round_trips)
        values["acts"] = "acts", float(len(storm.round_trips))
    outcome.figures += [
        Figure(storm.name, measure, unit, [value]) for measure, (unit, value) in values.items()
    ]
    outcome.figures += storm.figures
    outcome.checks += storm.checks
    if slow:
        outcome.notes.append(f"{storm.name}: {_by_act(slow)}")


def _by_act(slow: Sequence[slowlog.Ran]) -> str:
    """`claim 3 (30 ms), submit 1 (22 ms)`: how many acts of a kind took over 20 ms, and the slowest."""
    acts: dict[str, list[int]] = defaultdict(list)
    for one in slow:
        acts[one.act].append(one.us)
    return ", ".join(f"{act} {len(us)} ({max(us) / 1000:.0f} ms)" for act, us in sorted(acts.items()))
