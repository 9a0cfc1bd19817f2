"""Much that falls due together, of every kind: the store does and starts exactly what the rules say."""

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.model.task import NewTask as StoredTask
from fairlead.rules.twin import Twin
from fairlead.rules.values import NewTask, Policy, Worker
from fairlead.settings import Settings, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.connections import connected
from tests.servers import running

WORDS = ("high", "medium", "low")
LEASE = 30_000
DAY = 86_400_000
DOCTOR_EVERY = 4  # claims, and after the last
names = itertools.count()

waves = st.lists(
    st.tuples(
        st.integers(0, 2),  # priority
        st.integers(1, 170),  # how many
        st.sampled_from([0, 1_000, 2_000, 2_000]),  # delay
        st.booleans(),  # under the limit
        st.sampled_from([None, 700]),  # max_wait
    ),
    min_size=1,
    max_size=5,
)
#: How many are claimed, and the time that passes before: leases end after 31 s, tasks age after 10 minutes.
steps = st.lists(
    st.tuples(st.integers(1, 32), st.sampled_from([0, 0, 0, 500, 1_500, 40_000, 601_000, 1_900_000])),
    min_size=1,
    max_size=16,
)


async def play(store: Store, now: list[int], waves: Any, steps: Any) -> None:
    twin = Twin(Policy())
    twin.set_limit("few", slots=3, now=now[0])
    await store.limits.set("few", Slots(limit=3))
    twin.register(Worker(id="w", capacity=10_000), now[0])
    await store.workers.register("w", capacity=10_000)
    for priority, count, delay, limited, patience in waves:
        submitted = [
            StoredTask(
                task_type="echo",
                priority=WORDS[priority],
                limits={"few": 1} if limited else {},
                delay_seconds=delay / 1000,
                max_wait_seconds=patience and patience / 1000,
                timeout_seconds=DAY / 1000,
            )
            for _ in range(count)
        ]
        await store.submit(*submitted)
        for one in submitted:
            run_at = now[0] + delay if delay else None
            limits = {"few": 1} if limited else {}
            wanted = NewTask(
                one.task_id, "echo", priority, limits=limits, timeout=DAY, run_at=run_at, max_wait=patience
            )
            twin.submit(wanted, now[0])
    for number, (want, passes) in enumerate(steps, start=1):
        now[0] += passes
        twin.register(Worker(id="w", capacity=10_000), now[0])  # it may have been silent for too long
        await store.workers.register("w", capacity=10_000)
        claimed = await store.claim("w", want, lease_ms=LEASE)
        expected = twin.claim("w", want, LEASE, now[0])
        assert [task.task_id for task in claimed.tasks] == expected
        if number % DOCTOR_EVERY == 0 or number == len(steps):
            assert await examine(store.connection, now_ms=now[0], twice=False) == []
    records = await asyncio.gather(*map(store.get, twin.tasks))
    assert {task.task_id: task.status for task in records} == {i: t.state for i, t in twin.tasks.items()}


@pytest.mark.timeout(240)
def test_tasks_that_are_due_together_start_exactly_as_the_rules_say() -> None:
    with running("valkey") as server, asyncio.Runner() as runner:

        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
        @given(waves=waves, steps=steps)
        def check(waves: Any, steps: Any) -> None:
            async def story() -> None:
                now = [1_000_000]
                store = Store(connected(server.url, f"due-{next(names)}"), Settings(), lambda: str(now[0]))
                async with store:
                    await play(store, now, waves, steps)
                    await store.connection.client.flushall()

            runner.run(story())

        check()
