"""A repeated submit is one task: replies may be lost, and several clients may send it."""

import asyncio

import httpx

from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.requests import TASKS, good, refused, submit, task


async def test_a_repeated_submit_is_answered_as_the_first_one_was(
    api: httpx.AsyncClient, store: Store
) -> None:
    await store.limits.set("gpu", Slots(limit=0))
    body = {"task_type": "draw", "priority": "low", "limits": {"gpu": 1}, "idempotency_key": "k"}
    await submit(api)
    first = await api.post(TASKS, json=body)
    again = await api.post(TASKS, json=body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert len((await store.list_tasks()).tasks) == 2


async def test_the_key_may_come_as_a_header(api: httpx.AsyncClient) -> None:
    body, header = {"task_type": "draw"}, {"idempotency-key": "k"}
    first = good(await api.post(TASKS, json=body, headers=header), 201)
    assert good(await api.post(TASKS, json={**body, "idempotency_key": "k"})) == first
    assert (await task(api, first["task_id"]))["idempotency_key"] == "k"
    answer = await api.post(TASKS, json={**body, "idempotency_key": "other"}, headers=header)
    refused(answer, 422, "invalid_input", "idempotency_key")


async def test_a_key_used_for_another_task_is_a_conflict(api: httpx.AsyncClient) -> None:
    await submit(api, "draw", parameters={"n": 1}, idempotency_key="k")
    for other in ({"parameters": {"n": 2}}, {"task_type": "write"}, {"priority": "high"}, {"user_id": "ann"}):
        body = {"task_type": "draw", "parameters": {"n": 1}, "idempotency_key": "k", **other}
        refused(await api.post(TASKS, json=body), 409, "idempotency_conflict")


async def test_another_trace_or_order_of_fields_is_the_same_task(api: httpx.AsyncClient) -> None:
    first = await submit(api, "draw", user_id="ann", trace_id="one", delay_seconds=3600, idempotency_key="k")
    again = {"delay_seconds": 3600.0, "idempotency_key": "k", "trace_id": "two", "user_id": "ann"}
    assert good(await api.post(TASKS, json={**again, "task_type": "draw"}))["task_id"] == first["task_id"]


async def test_a_repeated_submit_returns_the_current_state_of_the_task(api: httpx.AsyncClient) -> None:
    first = await submit(api, idempotency_key="k")
    await api.delete(f"{TASKS}/{first['task_id']}")
    again = good(await api.post(TASKS, json={"task_type": "echo", "idempotency_key": "k"}))
    assert (again["task_id"], again["status"], again["queue_position"]) == (
        first["task_id"],
        "cancelled",
        None,
    )


async def test_200_clients_with_one_key_make_one_task(api: httpx.AsyncClient, store: Store) -> None:
    body = {"task_type": "echo", "parameters": {"n": 1}, "idempotency_key": "race"}
    answers = await asyncio.gather(*(api.post(TASKS, json=body) for _ in range(200)))
    assert sorted(answer.status_code for answer in answers) == [200] * 199 + [201]
    assert len({answer.json()["task_id"] for answer in answers}) == 1
    assert len((await store.list_tasks()).tasks) == 1


async def test_a_key_in_a_batch_counts_among_its_own_and_others(api: httpx.AsyncClient) -> None:
    first = await submit(api, idempotency_key="k")
    same, other = (
        {"task_type": "echo", "idempotency_key": "k"},
        {"task_type": "draw", "idempotency_key": "k"},
    )
    new = {"task_type": "echo", "idempotency_key": "n"}
    answer = good(await api.post(f"{TASKS}/batch", json={"tasks": [same, other, new, new]}), 201)
    one, two, three, four = answer["tasks"]
    assert one["task_id"] == first["task_id"]
    assert two["error"]["code"] == "idempotency_conflict"
    assert (three["task_id"], three["repeated"], four["repeated"]) == (four["task_id"], False, True)


async def test_a_replay_is_answered_although_the_task_is_forgotten(
    api: httpx.AsyncClient, store: Store
) -> None:
    body = {"task_type": "draw", "priority": "low", "idempotency_key": "k"}
    first = good(await api.post(TASKS, json=body), 201)
    await api.delete(f"{TASKS}/{first['task_id']}")
    await store.connection.client.delete(store.connection.keys.key("task", first["task_id"]))
    again = good(await api.post(TASKS, json=body))
    assert again == {**first, "status": "cancelled", "queue_position": None, "warnings": []}


async def test_a_replay_of_a_job_is_answered_although_it_is_forgotten(
    api: httpx.AsyncClient, store: Store
) -> None:
    pipelines = {"pipelines": {"story": ["draw"]}, "types": {"draw": {}}}
    good(await api.put("/internal/declarations", json=pipelines))
    body = {"feature_name": "story", "input_data": {}, "priority": "low", "idempotency_key": "k"}
    first = good(await api.post("/api/v1/jobs", json=body), 201)
    good(await api.delete(f"/api/v1/jobs/{first['job_id']}"))
    await store.connection.client.delete(store.connection.keys.key("job", first["job_id"]))
    again = good(await api.post("/api/v1/jobs", json=body))
    assert again == {**first, "status": "CANCELLED", "repeated": True, "warnings": []}
