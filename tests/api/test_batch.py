"""Many tasks at once: answered in order, each accepted or refused on its own."""

import asyncio

import httpx

from fairlead.store.store import Store
from tests.api.requests import TASKS, good, refused, submit, task

BATCH = f"{TASKS}/batch"


async def test_a_batch_is_answered_in_order(api: httpx.AsyncClient) -> None:
    tasks = [{"task_type": "echo", "parameters": {"n": n}} for n in range(1000)]
    answer = good(await api.post(BATCH, json={"tasks": tasks}), 201)
    assert {one["status"] for one in answer["tasks"]} == {"queued"}
    for n in (0, 1, 500, 999):
        assert (await task(api, answer["tasks"][n]["task_id"]))["parameters"] == {"n": n}


async def test_a_bad_one_is_refused_in_its_place(api: httpx.AsyncClient, store: Store) -> None:
    tasks = [
        {"task_type": "echo"},
        {"task_type": "a b"},
        "nonsense",
        {"task_type": "echo", "limits": {"nope": 1}},
        {"task_type": "echo", "unknown": 1},
        {"task_type": "echo", "duration": "fast"},
        {"task_type": "echo", "run_at": "never"},
        {"task_type": "echo", "delay_seconds": 9},
    ]
    answers = good(await api.post(BATCH, json={"tasks": tasks}), 201)["tasks"]
    assert [one.get("status") or one["error"]["code"] for one in answers] == [
        "queued",
        "invalid_input",
        "invalid_input",
        "unknown_limit",
        "invalid_input",
        "unknown_tier",
        "invalid_input",
        "delayed",
    ]
    fields = [one["error"]["errors"][0]["field"] for one in answers if "error" in one]
    assert fields == ["task_type", "body", "limits.nope", "unknown", "duration", "run_at"]
    assert all(one["error"]["status"] == 422 for one in answers if "error" in one)
    assert len((await store.list_tasks()).tasks) == 2


async def test_an_empty_batch_is_answered_with_nothing(api: httpx.AsyncClient) -> None:
    assert good(await api.post(BATCH, json={"tasks": []}), 201) == {"tasks": []}


async def test_1001_tasks_are_too_many(api: httpx.AsyncClient, store: Store) -> None:
    answer = await api.post(BATCH, json={"tasks": [{"task_type": "echo"}] * 1001})
    refused(answer, 422, "invalid_input", "tasks")
    assert (await store.list_tasks()).tasks == []


async def test_batches_and_single_ones_do_not_mix_up_their_answers(api: httpx.AsyncClient) -> None:
    async def some(kind: int) -> None:
        tasks = [{"task_type": f"kind{kind}", "parameters": {"n": n}} for n in range(20)]
        answer = good(await api.post(BATCH, json={"tasks": tasks}), 201)
        single = await submit(api, f"kind{kind}", parameters={"n": 20})
        for n, one in enumerate([*answer["tasks"], single]):
            kept = await task(api, one["task_id"])
            assert (kept["task_type"], kept["parameters"]) == (f"kind{kind}", {"n": n})

    await asyncio.gather(*map(some, range(8)))
