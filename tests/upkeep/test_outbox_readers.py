"""The estimator and the recorder read the same outbox: the recorder trims what both have read."""

import asyncio

from fairlead.background import in_background
from fairlead.history.opening import History
from fairlead.model.reports import Completed
from fairlead.store.store import Store
from fairlead.upkeep.estimator import Estimator
from fairlead.upkeep.recording import Recording
from tests.store.namespace import new, raw
from tests.waiting import wait_until

QUICK = 0.01
BATCHES, AT_ONCE = 40, 5


async def test_nothing_is_trimmed_that_the_estimator_has_not_read(
    live_store: Store, history: History
) -> None:
    """The recorder is the faster of both, and no forecast is made for so long that the last one has ended."""
    store, learnt = live_store, list[int]()
    await store.upkeep.elect("me", 60_000)
    estimator = Estimator(store, "me")
    await estimator.begin()
    learn = estimator.knowledge.learn

    def counted(events: list[object], position: str) -> None:
        learnt.append(len(events))
        learn(events, position)  # type: ignore[arg-type]

    estimator.knowledge.learn = counted  # type: ignore[assignment, method-assign]

    async def estimate() -> None:
        while await estimator.run_once():
            await asyncio.sleep(0.2)

    async def is_recorded() -> bool:
        lag = await store.outbox.lag()
        return lag is not None and lag.events == 0

    recording = Recording(store, history, idle_seconds=QUICK)
    async with in_background({"estimator": estimate, "recorder": recording.run}):
        await store.workers.register("w", capacity=AT_ONCE)
        for _ in range(BATCHES):
            await store.submit(*[new() for _ in range(AT_ONCE)])
            tasks = (await store.claim("w", AT_ONCE)).tasks
            await store.complete("w", *[Completed(task.task_id, task.fence) for task in tasks])
            await raw(store).delete(store.connection.keys.key("curves"))
            await asyncio.sleep(QUICK)
        await wait_until(is_recorded)
        await wait_until(lambda: sum(learnt) >= 3 * BATCHES * AT_ONCE, 10)
    assert sum(learnt) == 3 * BATCHES * AT_ONCE
