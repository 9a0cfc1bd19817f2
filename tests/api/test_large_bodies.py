"""Bodies of many large items are read a few items at a time: the answers are as if they were read at once."""

from typing import Any

import httpx

from fairlead.api.request import AT_ONCE, MOST_ITEM
from fairlead.store.store import Store
from tests.api.requests import NO_TASK, TASKS, HttpWorker, good, refused, submit, task

LARGE = "x" * (AT_ONCE // 3)  # two of them are read together
TOO_LARGE = "x" * MOST_ITEM


async def output(api: httpx.AsyncClient, task_id: str) -> list[Any]:
    """All that is kept, page by page."""
    chunks: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = good(await api.get(f"{TASKS}/{task_id}/outputs", params={"after": after}))
        chunks += [one["chunk"] for one in page["outputs"]]
        after = page["next_after"]
    return chunks


async def test_a_batch_is_answered_in_order_with_bad_ones_in_their_places(api: httpx.AsyncClient) -> None:
    tasks: list[Any] = [{"task_type": "echo", "parameters": {"n": n, "x": LARGE}} for n in range(8)]
    tasks[3] = {"task_type": "echo", "nope": LARGE}
    tasks[5] = {"task_type": "echo", "parameters": {"x": TOO_LARGE}}
    tasks[6] = "nonsense"
    answers = good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)["tasks"]
    outcomes = [one.get("status") or (one["error"]["status"], one["error"]["code"]) for one in answers]
    bad, queued = (422, "invalid_input"), "queued"
    assert outcomes == [queued] * 3 + [bad, queued, (413, "body_too_large"), bad, queued]
    for n in (0, 4, 7):
        assert (await task(api, answers[n]["task_id"]))["parameters"]["n"] == n


async def test_a_result_that_cannot_be_read_spoils_them_all(api: httpx.AsyncClient) -> None:
    taken = [await submit(api) for _ in range(5)]
    worker = await HttpWorker.register(api)
    results = [
        {"task_id": one["task_id"], "fence": one["fence"], "status": "completed", "result": LARGE}
        for one in await worker.poll(5)
    ]
    bad = [*results[:4], {**results[4], "status": "done"}]
    refused(await worker.post("result", results=bad), 422, "invalid_input", "results[4].status")
    assert (await task(api, taken[0]["task_id"]))["status"] == "executing"
    answer = good(await worker.post("result", results=results))
    assert [row["task_id"] for row in answer["results"]] == [one["task_id"] for one in results]
    assert (await task(api, taken[4]["task_id"]))["result"] == LARGE


async def test_no_results_are_reported_too(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    assert good(await worker.post("result", results=[])) == {"accepted": True, "results": []}


async def test_a_single_result_may_be_as_large_as_one_in_a_batch(api: httpx.AsyncClient) -> None:
    await submit(api)
    worker = await HttpWorker.register(api)
    one = await worker.poll_one()
    refused(await worker.complete(one, TOO_LARGE), 413, "body_too_large")
    refused(await worker.complete(one, "x" * AT_ONCE), 413, "too_large", "result")
    good(await worker.complete(one, LARGE))


async def test_much_output_is_kept_in_order_and_once(api: httpx.AsyncClient) -> None:
    await submit(api)
    worker = await HttpWorker.register(api)
    one = await worker.poll_one()
    chunks = [f"{n}:{'x' * 60_000}" for n in range(30)]
    report = {"task_id": one["task_id"], "fence": one["fence"], "fraction": 0.5, "message": "half"}
    for _ in range(2):  # the answer was lost, and the report is repeated
        answer = good(await worker.post("progress", reports=[{**report, "first": 1, "output": chunks}]))
        assert [row["accepted"] for row in answer["results"]] == [True]
    assert (await task(api, one["task_id"]))["progress"] == {"fraction": 0.5, "message": "half"}
    assert await output(api, one["task_id"]) == chunks


async def test_a_chunk_that_is_refused_spoils_its_report_alone(api: httpx.AsyncClient, store: Store) -> None:
    for _ in range(2):
        await submit(api)
    worker = await HttpWorker.register(api)
    first, second = await worker.poll(2)
    bad = ["x" * 60_000] * 10 + ["x" * 70_000]
    reports = [
        {"task_id": first["task_id"], "output": bad},
        {"task_id": NO_TASK, "output": ["x"]},
        {"task_id": second["task_id"], "output": ["good"]},
    ]
    answer = good(await worker.post("progress", reports=reports))
    assert [row["accepted"] for row in answer["results"]] == [False, False, True]
    assert await output(api, first["task_id"]) == []
    assert await output(api, second["task_id"]) == ["good"]
