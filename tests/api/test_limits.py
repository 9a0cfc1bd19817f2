"""Limits over HTTP: see them, set them, and hold units of one without a task."""

import asyncio
from functools import partial
from typing import Any

import httpx
import pytest

from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.requests import HttpWorker, good, hang_up, ids, post, refused, submit
from tests.api.serving import Gateway
from tests.waiting import wait_until

LIMITS = "/api/v1/limits"


async def put(api: httpx.AsyncClient, name: str, **body: Any) -> dict[str, Any]:
    return good(await api.put(f"{LIMITS}/{name}", json=body))


async def acquire(api: httpx.AsyncClient, name: str, **body: Any) -> httpx.Response:
    return await api.post(f"{LIMITS}/{name}/leases", json={"lease_seconds": 30, **body})


async def active(api: httpx.AsyncClient, name: str) -> int:
    count: int = good(await api.get(f"{LIMITS}/{name}"))["active"]
    return count


# Defining


async def test_a_limit_in_slots_is_defined_and_changed(api: httpx.AsyncClient) -> None:
    assert (await put(api, "gpu", limit=2))["limit"] == 2
    assert (await put(api, "gpu", limit=3))["limit"] == 3
    seen = good(await api.get(f"{LIMITS}/gpu"))
    assert seen == {
        "name": "gpu",
        "group": "gpu",
        "kind": "slots",
        "limit": 3,
        "active": 0,
        "waiting": 0,
        "room": 3,
        "paused": False,
        "held_back": False,
        "shared": False,
        "tenant": None,
        "slots": [],
        "has_more_slots": False,
    }


async def test_a_rate_is_defined(api: httpx.AsyncClient) -> None:
    answer = await put(api, "openai", rate="60/min", burst=10)
    assert (answer["kind"], answer["rate"], answer["burst"], answer["limit"]) == ("rate", "1/s", 10, 10)
    assert (await put(api, "openai", rate="30/h"))["burst"] == 3


async def test_all_limits_are_listed(api: httpx.AsyncClient) -> None:
    await put(api, "gpu", limit=2)
    await put(api, "openai", rate="5/s")
    listed = good(await api.get(LIMITS))["limits"]
    assert [(one["name"], one["kind"], one["limit"], one.get("rate")) for one in listed] == [
        ("gpu", "slots", 2, None),
        ("openai", "rate", 1, "5/s"),
    ]


async def test_0_pauses_and_a_larger_limit_resumes_at_once(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    await put(api, "gpu", limit=0)
    given = await submit(api, limits={"gpu": 1})
    assert await worker.poll() == []
    poll = asyncio.create_task(worker.poll(wait_seconds=30))
    await put(api, "gpu", limit=1)
    assert ids(await poll) == [given["task_id"]]


async def test_paused_keeps_what_a_limit_allows(api: httpx.AsyncClient, store: Store) -> None:
    worker = await HttpWorker.register(api)
    await put(api, "openai", rate="60/min", burst=10)
    given = await submit(api, limits={"openai": 1})
    assert (await put(api, "openai", paused=True))["paused"]
    assert await worker.poll() == []
    resumed = await put(api, "openai", paused=False)
    assert (resumed["paused"], resumed["burst"]) == (False, 10)
    assert ids(await worker.poll()) == [given["task_id"]]
    acts = [entry.act for entry in (await store.audit.page()).entries]
    assert acts == ["resume_limit", "pause_limit", "set_limit"]
    both = await api.put(f"{LIMITS}/openai", json={"paused": True, "limit": 3})
    refused(both, 422, "invalid_input", "paused")
    refused(await api.put(f"{LIMITS}/other", json={"paused": True}), 404, "unknown_limit")


async def test_setting_a_limit_is_left_in_the_audit(api: httpx.AsyncClient, store: Store) -> None:
    await put(api, "gpu", limit=2)
    await put(api, "gpu", limit=5)
    after, before = (await store.audit.page()).entries
    assert (before.act, before.subject, before.before, before.after["limit"]) == ("set_limit", "gpu", None, 2)
    assert (after.before["limit"], after.after["limit"]) == (2, 5)


async def test_a_limit_that_nothing_needs_is_deleted(api: httpx.AsyncClient, store: Store) -> None:
    await put(api, "gpu", limit=2)
    given = await submit(api, limits={"gpu": 1})
    problem = refused(await api.delete(f"{LIMITS}/gpu"), 409, "limit_in_use")
    assert problem["detail"] == (
        "Limit gpu is in use: tasks or acquires wait for it (1); let them run or cancel them first."
    )
    good(await api.delete(f"/api/v1/tasks/{given['task_id']}"))
    assert good(await api.delete(f"{LIMITS}/gpu")) == {"name": "gpu", "deleted": True}
    refused(await api.delete(f"{LIMITS}/gpu"), 404, "unknown_limit")
    refused(await api.delete(f"{LIMITS}/a%20b"), 422, "invalid_input", "name")
    entry, _ = (await store.audit.page()).entries
    assert (entry.act, entry.subject, entry.before["limit"], entry.after) == ("delete_limit", "gpu", 2, None)


async def test_an_invalid_limit_is_refused(
    api: httpx.AsyncClient, store: Store, subtests: pytest.Subtests
) -> None:
    for body, field in [
        ({}, "limit"),
        ({"limit": 1, "rate": "1/s"}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"limit": "2"}, "limit"),
        ({"limit": 10**10}, "limit"),
        ({"limit": 1, "burst": 2}, "burst"),
        ({"rate": "many"}, "rate"),
        ({"rate": "0/s"}, "rate"),
        ({"rate": "1/fortnight"}, "rate"),
        ({"rate": "9" * 30 + "/s"}, "rate"),
        ({"rate": "1/s", "burst": 0}, "burst"),
        ({"slots": 2}, "slots"),
    ]:
        with subtests.test(body=body, field=field):
            refused(await api.put(f"{LIMITS}/gpu", json=body), 422, "invalid_input", field)
            assert await store.limits.all() == []


async def test_an_invalid_name_is_refused(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for name in ["a%20b", "%00", "a%0A", "%7Bx%7D", "a=1", "n" * 201]:
        with subtests.test(name=name):
            refused(await api.put(f"{LIMITS}/{name}", json={"limit": 1}), 422, "invalid_input", "name")
            refused(await api.get(f"{LIMITS}/{name}"), 422, "invalid_input", "name")
            refused(await acquire(api, name), 422, "invalid_input", "name")


async def test_an_unknown_limit_is_unknown(api: httpx.AsyncClient) -> None:
    refused(await api.get(f"{LIMITS}/nope"), 404, "unknown_limit")
    refused(await acquire(api, "nope"), 404, "unknown_limit")


# Holding


async def test_units_are_held_shown_and_returned(api: httpx.AsyncClient) -> None:
    await put(api, "gpu", limit=3)
    lease = good(await acquire(api, "gpu", units=2, holder="script"), 201)
    seen = good(await api.get(f"{LIMITS}/gpu"))
    assert (seen["active"], seen["room"]) == (2, 1)
    assert seen["slots"] == [
        {
            "slot_id": lease["lease_id"],
            "task_id": None,
            "worker_id": "script",
            "expires_at": lease["expires_at"],
            "units": 2,
            "tenant": None,
        }
    ]
    answer = good(await api.delete(f"{LIMITS}/gpu/leases/{lease['lease_id']}"))
    assert answer == {"lease_id": lease["lease_id"], "released": True}
    assert await active(api, "gpu") == 0
    refused(await api.delete(f"{LIMITS}/gpu/leases/{lease['lease_id']}"), 409, "fenced")


async def test_the_slots_of_tasks_are_shown_too(api: httpx.AsyncClient) -> None:
    await put(api, "gpu", limit=3)
    worker = await HttpWorker.register(api)
    for _ in range(2):
        await submit(api, limits={"gpu": 2})
    polled = await worker.poll_one()
    seen = good(await api.get(f"{LIMITS}/gpu"))
    ((slot),) = seen["slots"]
    assert (slot["slot_id"], slot["task_id"], slot["worker_id"], slot["units"]) == (
        polled["task_id"],
        polled["task_id"],
        worker.id,
        2,
    )
    assert (seen["active"], seen["waiting"]) == (2, 1)


async def test_one_of_many_holders_can_be_read(api: httpx.AsyncClient) -> None:
    await put(api, "gpu", limit=200)
    leases = [good(await acquire(api, "gpu"), 201)["lease_id"] for _ in range(101)]
    seen = good(await api.get(f"{LIMITS}/gpu"))
    assert (seen["active"], len(seen["slots"]), seen["has_more_slots"]) == (101, 100, True)
    for lease in leases:
        alone = good(await api.get(f"{LIMITS}/gpu", params={"lease_id": lease}))
        assert [slot["slot_id"] for slot in alone["slots"]] == [lease]
    refused(await api.get(f"{LIMITS}/gpu", params={"lease_id": "no name"}), 422, "invalid_input", "lease_id")


async def test_a_full_limit_is_refused_as_full(api: httpx.AsyncClient) -> None:
    await put(api, "gpu", limit=1)
    good(await acquire(api, "gpu"), 201)
    refused(await acquire(api, "gpu"), 409, "limit_full")
    refused(await acquire(api, "gpu", wait_seconds=0.1), 409, "limit_full")
    answer = await acquire(api, "gpu", units=2)
    refused(answer, 422, "too_many_units", "units")


async def test_a_waiting_acquire_gets_it_when_it_is_free(api: httpx.AsyncClient, store: Store) -> None:
    await put(api, "gpu", limit=1)
    first = good(await acquire(api, "gpu"), 201)
    waiting = asyncio.create_task(acquire(api, "gpu", wait_seconds=30))
    refused(await acquire(api, "gpu"), 409, "limit_full")
    good(await api.delete(f"{LIMITS}/gpu/leases/{first['lease_id']}"))
    second = good(await waiting, 201)
    assert second["fence"] > first["fence"]


async def test_waiting_acquires_are_ordered_by_priority(api: httpx.AsyncClient, store: Store) -> None:
    await put(api, "gpu", limit=1)
    first = good(await acquire(api, "gpu"), 201)
    calls: list[asyncio.Task[httpx.Response]] = []
    for count, priority in enumerate(("low", "high"), start=1):
        calls.append(asyncio.create_task(acquire(api, "gpu", wait_seconds=30, priority=priority)))
        await wait_until(partial(are_waiting, store, count))
    low, high = calls
    good(await api.delete(f"{LIMITS}/gpu/leases/{first['lease_id']}"))
    lease = good(await high, 201)
    assert not low.done()
    good(await api.delete(f"{LIMITS}/gpu/leases/{lease['lease_id']}"))
    good(await low, 201)


async def are_waiting(store: Store, count: int) -> bool:
    return (await store.limits.get("gpu")).waiting == count


async def test_a_place_is_kept_from_one_call_to_the_next(api: httpx.AsyncClient, store: Store) -> None:
    await put(api, "gpu", limit=1)
    first = good(await acquire(api, "gpu"), 201)
    mine = {"lease_id": "mine", "wait_seconds": 0.05, "keep_place": True}
    refused(await acquire(api, "gpu", **mine), 409, "limit_full")
    later = asyncio.create_task(acquire(api, "gpu", wait_seconds=30))
    await wait_until(lambda: are_waiting(store, 2))
    good(await api.delete(f"{LIMITS}/gpu/leases/{first['lease_id']}"))
    good(await acquire(api, "gpu", **mine), 201)
    assert not later.done()
    good(await api.delete(f"{LIMITS}/gpu/leases/mine"))
    good(await later, 201)


async def test_a_client_that_disconnects_leaves_the_queue(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    await put(api, "gpu", limit=1)
    good(await acquire(api, "gpu"), 201)
    body = b'{"lease_seconds": 600, "wait_seconds": 30}'
    line = await post(gateway.port, f"{LIMITS}/gpu/leases", body)
    await wait_until(lambda: are_waiting(store, 1))
    await hang_up(line)
    await wait_until(lambda: are_waiting(store, 0), timeout=8)


async def test_an_acquire_without_an_answer_is_repeated_with_the_same_id(api: httpx.AsyncClient) -> None:
    await put(api, "gpu", limit=1)
    first = good(await acquire(api, "gpu", lease_id="mine"), 201)
    assert good(await acquire(api, "gpu", lease_id="mine"), 201) == first
    await put(api, "gpu", limit=2)
    refused(await acquire(api, "gpu", lease_id="mine", units=2), 409, "idempotency_conflict")


async def test_a_lease_is_renewed_with_or_without_its_fence(api: httpx.AsyncClient) -> None:
    await put(api, "gpu", limit=1)
    lease = good(await acquire(api, "gpu", lease_seconds=30), 201)
    path = f"{LIMITS}/gpu/leases/{lease['lease_id']}"
    longer = good(await api.post(f"{path}/renew", json={"lease_seconds": 60}))
    assert longer["expires_at"] > lease["expires_at"]
    assert (longer["lease_id"], longer["fence"]) == (lease["lease_id"], lease["fence"])
    longest = good(await api.post(f"{path}/renew", json={"lease_seconds": 90, "fence": lease["fence"]}))
    assert longest["expires_at"] > longer["expires_at"]
    good(await api.post(f"{path}/renew"))
    refused(await api.post(f"{path}/renew", json={"fence": lease["fence"] + 1}), 409, "fenced")
    refused(await api.delete(path, params={"fence": lease["fence"] + 1}), 409, "fenced")
    good(await api.delete(path, params={"fence": lease["fence"]}))
    refused(await api.post(f"{path}/renew"), 409, "fenced")


async def test_a_lease_belongs_to_its_limit(api: httpx.AsyncClient) -> None:
    for name in ("gpu", "disk"):
        await put(api, name, limit=1)
    lease = good(await acquire(api, "gpu"), 201)
    wrong = f"{LIMITS}/disk/leases/{lease['lease_id']}"
    refused(await api.post(f"{wrong}/renew"), 409, "fenced")
    refused(await api.delete(wrong), 409, "fenced")
    refused(await api.delete(wrong, params={"force": "true"}), 409, "fenced")
    assert await active(api, "gpu") == 1


async def test_the_lease_of_a_task_is_not_among_them(api: httpx.AsyncClient) -> None:
    await put(api, "gpu", limit=1)
    worker = await HttpWorker.register(api)
    await submit(api, limits={"gpu": 1})
    polled = await worker.poll_one()
    path = f"{LIMITS}/gpu/leases/{polled['task_id']}"
    refused(await api.post(f"{path}/renew", json={"fence": polled["fence"]}), 409, "fenced")
    refused(await api.delete(path, params={"force": "true"}), 409, "fenced")
    assert await active(api, "gpu") == 1


async def test_a_stuck_lease_is_freed_by_force_and_that_is_on_record(
    api: httpx.AsyncClient, store: Store
) -> None:
    await put(api, "gpu", limit=1)
    lease = good(await acquire(api, "gpu"), 201)
    path = f"{LIMITS}/gpu/leases/{lease['lease_id']}"
    good(await api.delete(path, params={"force": "true"}, headers={"x-reason": "it hangs"}))
    assert await active(api, "gpu") == 0
    entry = (await store.audit.page()).entries[0]
    assert (entry.act, entry.subject, entry.reason) == (
        "force_release",
        f"gpu/{lease['lease_id']}",
        "it hangs",
    )


async def test_a_lease_that_is_not_renewed_ends(api: httpx.AsyncClient) -> None:
    await put(api, "gpu", limit=1)
    lease = good(await acquire(api, "gpu", lease_seconds=0.05), 201)

    async def is_free() -> bool:
        return await active(api, "gpu") == 0

    await wait_until(is_free)
    refused(await api.post(f"{LIMITS}/gpu/leases/{lease['lease_id']}/renew"), 409, "fenced")


async def test_units_acquired_for_a_disconnected_client_are_free_again(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    """The line is cut before it can be answered."""
    await store.limits.set("gpu", Slots(limit=1))
    async with gateway.frozen():
        await hang_up(await post(gateway.port, f"{LIMITS}/gpu/leases", b'{"lease_seconds": 600}'))
    # it was given to the disconnected client or to none: it is not kept for 600 s
    good(await acquire(api, "gpu", wait_seconds=20), 201)


async def test_many_waiting_acquires_never_hold_more_than_the_limit(
    api: httpx.AsyncClient, store: Store
) -> None:
    await store.limits.set("gpu", Slots(limit=3))
    holding = most = 0

    async def one() -> None:
        nonlocal holding, most
        lease = good(await acquire(api, "gpu", wait_seconds=30), 201)
        holding += 1
        most = max(most, holding)
        assert (await store.limits.get("gpu")).active <= 3
        holding -= 1
        good(await api.delete(f"{LIMITS}/gpu/leases/{lease['lease_id']}"))

    await asyncio.gather(*(one() for _ in range(20)))
    assert most <= 3
    assert await active(api, "gpu") == 0
