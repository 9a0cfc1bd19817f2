"""A task that comes while nobody else waits goes straight to a worker, and all is as if it had queued."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.model.reports import Completed
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.handing import called, handed, waits
from tests.store.namespace import claim_one, events, everything, new

WISHES: dict[str, dict[str, Any]] = {
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
    """What is in the store but for what may differ, and the events by what they say of the task."""
    content = await everything(store)
    del content["events"]
    for name, fields in DIFFERENT.items():
        record, ends = content[name]
        content[name] = ({field: value for field, value in record.items() if field not in fields}, ends)
    told = await events(store)
    for event in told:
        if event["act"] == "claim":
            event["detail"] = {key: value for key, value in event["detail"].items() if key != "looked_at"}
    return {**content, "events": told}


@pytest.mark.parametrize("wishes", WISHES.values(), ids=WISHES)
async def test_what_is_left_is_as_if_it_had_queued(
    store: Store, clock: Clock, open_store: Callable[..., Store], wishes: dict[str, Any]
) -> None:
    other = open_store(clock=clock)
    await other.open()
    for number in range(2):  # the second meets the books that the first has left
        key = wishes.get("idempotency_key")
        task = new(**wishes | {"idempotency_key": key and f"{key} {number}"})
        for one in (store, other):
            await one.limits.set("gpu", Slots(limit=2))
            await one.limits.set("net", Slots(limit=5))
            await one.workers.register("w", capacity=3, capabilities=["fast"])
            await one.claim("w", idle=True, heard=() if one is store else None)
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
    """It is looked at as well, and does not stand in the way."""
    await store.limits.set("gpu", Slots(limit=0))
    await store.submit_one(new(limits={"gpu": 1}))
    await waits(store, "w")
    task = new()
    await store.submit_one(task)
    assert (await handed(store)).task.task_id == task.task_id
    (claim,) = [event for event in await events(store, task.task_id) if event["act"] == "claim"]
    assert claim["detail"]["looked_at"] == 1
