"""What a claim and a submit cost when much is queued, and 90 % of it, its head, waits for a full limit.

The blocked tasks are submitted first and have the same priority, so they rank before those that are free.
Each depth has its own server, and the depths take turns, so that other load on the machine affects
all of them equally.
"""

import contextlib
import time
from dataclasses import dataclass, field

from benchmarks.bench import (
    HOUR,
    NO_AOF,
    WORKER,
    Bench,
    describe,
    drop_events,
    fill,
    register,
    scripts_ran,
    small_task,
)
from benchmarks.figures import Figure, Outcome, percentile
from fairlead.model.reports import Completed
from fairlead.settings import Slots
from fairlead.store.store import Store

BLOCK = 50  # claims between two looks at the server's counters


@dataclass
class Depth:
    queued: int
    store: Store
    claim_us: list[float] = field(default_factory=list)  # server time, mean of each block
    submit_us: list[float] = field(default_factory=list)
    round_trips: list[float] = field(default_factory=list)

    async def prepare(self) -> None:
        await self.store.limits.set("full", Slots(limit=1))
        await register(self.store)
        await self.store.submit(small_task(limits={"full": 1}))
        await self.store.claim(WORKER, lease_ms=HOUR)  # holds the only slot
        await fill(self.store, self.queued * 9 // 10, limits={"full": 1})
        await fill(self.store, self.queued // 10)

    async def measure(self) -> None:
        """Claims a block one by one, ends it, and submits the same number one by one."""
        client = self.store.connection.client
        await register(self.store)  # the other depths took their time
        before = await scripts_ran(client)
        claimed = [await self._claim() for _ in range(BLOCK)]
        self.claim_us.append(_per_call(before, await scripts_ran(client)))
        await self.store.complete(WORKER, *(Completed(task_id) for task_id in claimed))
        tasks = [small_task(n) for n in range(BLOCK)]
        before = await scripts_ran(client)
        for task in tasks:
            await self.store.submit_one(task)
        self.submit_us.append(_per_call(before, await scripts_ran(client)))
        await drop_events(self.store)

    async def _claim(self) -> str:
        started = time.perf_counter()
        claimed = await self.store.claim(WORKER, lease_ms=HOUR)
        self.round_trips.append((time.perf_counter() - started) * 1e6)
        return claimed.tasks[0].task_id

    def figures(self) -> list[Figure]:
        case = f"{self.queued:,} queued"
        blocks = [self.round_trips[i : i + 500] for i in range(0, len(self.round_trips), 500)]
        return [
            Figure(case, "claim, server", "us", self.claim_us),
            Figure(case, "submit, server", "us", self.submit_us),
            Figure(case, "claim, round trip p50", "us", [percentile(block, 50) for block in blocks]),
            Figure(case, "claim, round trip p99", "us", [percentile(block, 99) for block in blocks]),
        ]


async def run(bench: Bench) -> Outcome:
    sizes, rounds = ((1_000, 5_000), 2) if bench.quick else ((1_000, 10_000, 100_000, 500_000), 40)
    outcome = Outcome(notes=[f"{rounds} rounds of {BLOCK} claims and {BLOCK} submits, each of one task"])
    async with contextlib.AsyncExitStack() as stack:
        depths = []
        for queued in sizes:
            url = stack.enter_context(bench.serve(*NO_AOF))
            outcome.servers["every depth"] = await describe(url)
            depths.append(Depth(queued, await stack.enter_async_context(bench.store(url))))
            await depths[-1].prepare()
        for _ in range(rounds):
            for depth in depths:
                await depth.measure()
    for depth in depths:
        outcome.figures += depth.figures()
    least, most = (f"{depth.queued:,} queued" for depth in (depths[0], depths[-1]))
    for measure, target in (("claim, server", "<= 2, moonshot 1.2"), ("submit, server", "")):
        outcome.compare(f"{measure}: {most} to {least}", (most, measure), (least, measure), target)
    return outcome


def _per_call(before: tuple[int, int], after: tuple[int, int]) -> float:
    return (after[0] - before[0]) / (after[1] - before[1])
