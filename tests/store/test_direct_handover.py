"""A task that arrives while no other waits goes straight to a worker, with the same result as if queued."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.model.reports import Completed
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.handing import called, handed, waits
from tests.store.namespace import claim_one, events, everything, new

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "high": {"priority": "high"},
    "low": {"priority": "low"},
    "a user": {"user_id": "ann", "tenant": "acme"},
    "a limit": {"limits": {"gpu": 1}},
    "two limits": {"limits": {"gpu": 1, "net": 2}},
    "a group": {"concurrency_group": "scene", "concurrency_limit": 3},
    "capabilities": {"required_capabilities": ("fast",)},
    "a longest wait": {"max_wait_seconds": 60.0},
    "a key": {"idempotency_key": "only"},
    "retries and a timeout": {"max_retries": 7, "timeout_seconds": 5.0},
}
# of the worker: how it came by the task; of the namespace: it was never worth an alarm for ageing, and two
# namespaces learn of their workers at different instants
DIFFERENT = {
    "worker:w": {b"takes", b"handed", b"idle"},
    "meta": {b"alarm", b"audience_version", b"epoch"},
}


async def left(store: Store) -> dict[str, Any]:
    """The content of the store except what may differ, and its events without such fields."""
    content = await everything(store)
    del content["events"]
    for name, fields in DIFFERENT.items():
        record, ends = content[name]
        content[name] = ({field: value for field, value in record.items() if field not in fields}, ends)
    kept = await events(store)
    for event in kept:
        if event["act"] == "claim":
            event["detail"] = {key: value for key, value in event["detail"].items() if key != "looked_at"}
    return {**content, "events": kept}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
async def test_the_store_holds_the_same_as_if_the_task_had_queued(
    store: Store, clock: Clock, open_store: Callable[..., Store], options: dict[str, Any]
) -> None:
    other = open_store(clock=clock)
    await other.open()
    for number in range(2):  # the second meets the counts that the first has left
        key = options.get("idempotency_key")
        task = new(**options | {"idempotency_key": key and f"{key} {number}"})
        for one in (store, other):
            await one.limits.set("gpu", Slots(limit=2))
            await one.limits.set("net", Slots(limit=5))
            await one.workers.register("w", capacity=3, capabilities=["fast"])
            await one.claim("w", idle=True, acknowledged=() if one is store else None)
            await one.submit_one(task)
            if one is store:
                run = (await handed(one)).task
            else:
                await called(one)
                run = await claim_one(one)
            assert run == await one.get(task.task_id), number
        assert await left(store) == await left(other)
        clock.pass_seconds(1.5)
        for one in (store, other):
            await one.complete("w", Completed(task.task_id))
        clock.pass_ms(10)


async def test_one_that_waits_for_a_full_limit_keeps_others_from_going_straight(store: Store) -> None:
    """It is considered as well, and blocks nothing."""
    await store.limits.set("gpu", Slots(limit=0))
    await store.submit_one(new(limits={"gpu": 1}))
    await waits(store, "w")
    task = new()
    await store.submit_one(task)
    assert (await handed(store)).task.task_id == task.task_id
    (claim,) = [event for event in await events(store, task.task_id) if event["act"] == "claim"]
    assert claim["detail"]["looked_at"] == 1
