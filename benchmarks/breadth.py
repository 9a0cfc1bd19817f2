"""What single acts and batches cost when the queue is broad: many types, limits, profiles or dead workers.

Each case has its own server and is compared with the base, one type without a limit. The cases take
turns, so that other load on the machine affects all of them equally. Server time, from the slow log.
"""

import contextlib
from collections import defaultdict
from dataclasses import dataclass, field, replace

from benchmarks import memory, slowlog
from benchmarks.bench import NO_AOF, Bench, describe
from benchmarks.breadth_scenes import (
    BASE,
    BATCH,
    CALM,
    IN_TIERS,
    QUICK,
    TIERED,
    Scene,
    Sizes,
    accepted,
    cases,
)
from benchmarks.figures import Figure, Outcome
from fairlead.errors import FairleadError
from fairlead.model.reports import Completed
from fairlead.model.task import Task

ACTS = ("submit", "claim", "complete")
AIMS = (
    "aims: submit, claim, complete of one task <= 60, 75, 45 us; per task in batches of 100 <= 12, 18, 12 us;"
    " <= 600 bytes per task"
)


@dataclass
class Case:
    scene: Scene
    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # us, one per round

    async def measure(self, singles: int) -> None:
        await self._ran()
        for _ in range(singles):
            task = await self._replace_one(next(self.scene.turns))
        await self._keep_acts("", singles)
        await self.scene.rest()
        await self._ran()
        await self._replace_batch(next(self.scene.turns))
        await self._keep_acts(f", of {BATCH}", BATCH)
        await self.scene.rest()
        await self._ask(task)

    async def _replace_one(self, worker: str) -> str:
        """Completes the oldest run of this worker, claims and submits one task; returns the new id."""
        scene, hand = self.scene, self.scene.hands[worker]
        accepted(await scene.store.complete(worker, _done(hand.popleft())))
        (claimed,) = await scene.claim(worker, 1)
        hand.append(claimed)
        await scene.confirm(worker)
        return (await scene.store.submit_one(scene.task(claimed.parameters["n"]))).task_id

    async def _replace_batch(self, worker: str) -> None:
        scene, hand = self.scene, self.scene.hands[worker]
        accepted(await scene.store.complete(worker, *(_done(hand.popleft()) for _ in range(BATCH))))
        claimed = await scene.claim(worker, BATCH)
        hand.extend(claimed)
        await scene.confirm(worker)
        accepted(await scene.store.submit(*(scene.task(task.parameters["n"]) for task in claimed)))

    async def _ask(self, task_id: str) -> None:
        """Why the task waits, and the status of its limit."""
        store = self.scene.store
        number = (await store.get(task_id)).parameters["n"]
        await self._ran()
        await store.explain(task_id)
        self.values["explain"].append(_us(await self._ran()))
        await store.limits.get(self.scene.limit(number))
        self.values["limit status"].append(_us(await self._ran()))

    async def _keep_acts(self, suffix: str, tasks: int) -> None:
        ran = await self._ran()
        for act in ACTS:
            # a claim that gave nothing but "again" is part of what the next task cost
            self.values[act + suffix].append(_us([one for one in ran if one.act == act]) / tasks)

    async def _ran(self) -> list[slowlog.Ran]:
        return await slowlog.take(self.scene.store.connection.client)

    def figures(self) -> list[Figure]:
        return [Figure(self.scene.name, measure, "us", values) for measure, values in self.values.items()]


async def run(bench: Bench) -> Outcome:
    bench.require_private_server()
    sizes = QUICK if bench.quick else Sizes()
    if bench.customers:
        sizes = replace(sizes, customers=bench.customers)
    outcome = Outcome(
        notes=[
            f"{sizes.rounds} rounds of {sizes.singles} submits, claims and completions of one task each, "
            f"then one of {BATCH} tasks each; {sizes.customers:,} tasks are queued in every case",
            AIMS,
        ]
    )
    async with contextlib.AsyncExitStack() as stack:
        running = await _prepare(bench, sizes, outcome, stack)
        for _ in range(sizes.rounds):
            for case in list(running):
                try:
                    await case.measure(sizes.singles)
                except FairleadError as problem:
                    _refuse(outcome, case.scene, problem)
                    running.remove(case)
    for case in running:
        outcome.figures += case.figures()
    _compare(outcome, running)
    outcome.figures.append(await _bytes_per_task(bench))
    return outcome


async def _prepare(
    bench: Bench, sizes: Sizes, outcome: Outcome, stack: contextlib.AsyncExitStack
) -> list[Case]:
    """The cases that the store accepts, the base first."""
    prepared = []
    for name, make in cases(sizes).items():
        url = stack.enter_context(bench.serve(*NO_AOF, *slowlog.log_above(slowlog.EVERY_ACT)))
        settings = IN_TIERS if name == TIERED else CALM
        outcome.servers["every case"] = await describe(url)
        scene = make(name, await stack.enter_async_context(bench.store(url, settings)), sizes)
        try:
            await scene.prepare()
            prepared.append(Case(scene))
        except FairleadError as problem:
            _refuse(outcome, scene, problem)
    return prepared


def _refuse(outcome: Outcome, scene: Scene, problem: FairleadError) -> None:
    if scene.name == BASE:  # nothing to compare the others with
        raise problem
    outcome.refused[scene.name] = f"{problem.code}: {problem}"


def _compare(outcome: Outcome, measured: list[Case]) -> None:
    for case in measured:
        name = case.scene.name
        for measure in case.values if name != BASE else ():
            outcome.compare(
                f"{measure}: {name} to {BASE}", (name, measure), (BASE, measure), f"<= {case.scene.most}"
            )


async def _bytes_per_task(bench: Bench) -> Figure:
    count, calm = (2_000, 0.05) if bench.quick else (100_000, 1.5)
    with bench.serve(*NO_AOF) as url:
        async with bench.store(url) as store:
            before, after, _ = await memory.weigh(store, count, calm)
    return Figure(BASE, "bytes per task, event included", "bytes", [(after - before) / count])


def _done(task: Task) -> Completed:
    return Completed(task.task_id, task.fence)


def _us(ran: list[slowlog.Ran]) -> float:
    return float(sum(one.us for one in ran))
