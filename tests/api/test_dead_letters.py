"""Dead letters over HTTP: look, replay one or many, purge."""

from typing import Any

import httpx

from fairlead.model.job import NewJob, NewStep
from fairlead.store.store import Store
from tests.api.requests import NO_BLOB, NO_TASK, HttpWorker, good, ids, refused, submit, task

DLQ = "/api/v1/dlq"


async def fail_some(api: httpx.AsyncClient, *task_types: str) -> list[str]:
    worker = await HttpWorker.register(api, capacity=100)
    failed = []
    for task_type in task_types:
        await submit(api, task_type)
        polled = await worker.poll_one()
        good(await worker.fail(polled, message="no", retriable=False))
        failed.append(polled["task_id"])
    return failed


async def test_they_are_listed_latest_first_page_by_page(api: httpx.AsyncClient) -> None:
    failed = await fail_some(api, *["draw"] * 5)
    first = good(await api.get(DLQ, params={"limit": 2}))
    second = good(await api.get(DLQ, params={"limit": 9, "cursor": first["next_cursor"]}))
    listed = ids(first["tasks"]) + ids(second["tasks"])
    assert (sorted(listed), second["next_cursor"]) == (sorted(failed), None)
    assert [one["error"]["message"] for one in first["tasks"]] == ["no", "no"]


async def test_they_are_filtered(api: httpx.AsyncClient) -> None:
    failed = await fail_some(api, "draw", "sing")
    cases: list[tuple[dict[str, str | int], list[str]]] = [
        ({"task_type": "sing", "limit": 1}, failed[1:]),
        ({"status": "dead_letter"}, []),
        ({"text": "NO"}, failed[::-1]),
        ({"code": "other"}, []),
        ({"since": "2000-01-01T00:00:00Z", "until": "2000-01-01T00:00:01+01:00"}, []),
        ({"tenant": "acme"}, []),
    ]
    for query, found in cases:
        assert sorted(ids(good(await api.get(DLQ, params=query))["tasks"])) == sorted(found), query
    for wrong in ({"status": "queued"}, {"since": "yesterday"}, {"cursor": "1"}, {"colour": "red"}):
        assert (await api.get(DLQ, params=wrong)).status_code == 422, wrong


async def test_one_is_shown_with_why_and_its_traceback(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    waiting = (await submit(api))["task_id"]
    refused(await api.get(f"{DLQ}/{waiting}"), 404, "unknown_task")
    polled = await worker.poll_one()
    good(await worker.fail(polled, message="no", retriable=False, traceback="a.py, line 1"))
    shown = good(await api.get(f"{DLQ}/{waiting}"))
    assert shown["why"].startswith("Its run failed with ")
    assert shown["error"]["traceback"] == "a.py, line 1"


async def test_one_is_replayed_with_all_its_retries(api: httpx.AsyncClient, store: Store) -> None:
    (failed,) = await fail_some(api, "draw")
    answer = await api.post(f"{DLQ}/{failed}/replay", headers={"x-reason": "repaired"})
    assert good(answer) == {"task_id": failed, "status": "queued", "replayed": [failed]}
    again = await task(api, failed)
    assert (again["status"], again["retry_count"], again["crash_count"]) == ("queued", 0, 0)
    refused(await api.post(f"{DLQ}/{failed}/replay"), 409, "not_replayable")
    (entry,) = (await store.audit.page()).entries
    assert (entry.act, entry.subject, entry.reason) == ("replay", failed, "repaired")


async def test_many_are_replayed_by_type_and_number(api: httpx.AsyncClient, store: Store) -> None:
    failed = await fail_some(api, "draw", "write", "draw", "write", "draw")
    drawn = [failed[0], failed[2], failed[4]]
    answer = good(await api.post(f"{DLQ}/replay", json={"task_type": "draw", "limit": 2}))
    assert len(answer["replayed"]) == 2 and set(answer["replayed"]) < set(drawn)
    rest = good(await api.post(f"{DLQ}/replay"))["replayed"]
    assert sorted(rest + answer["replayed"]) == sorted(failed)
    assert good(await api.post(f"{DLQ}/replay", json={})) == {"replayed": []}
    assert [entry.act for entry in (await store.audit.page()).entries] == ["replay"] * 3


async def test_one_is_replayed_with_other_parameters(api: httpx.AsyncClient, store: Store) -> None:
    (failed,) = await fail_some(api, "draw")
    edited = {"parameters": {"width": 0, "note": "é"}}
    missing = {"parameters": {"file": {"blob": NO_BLOB, "size": 1}}}
    refused(await api.post(f"{DLQ}/{failed}/replay", json=missing), 422, "unknown_blob", "parameters")
    good(await api.post(f"{DLQ}/{failed}/replay", json=edited))
    polled = await (await HttpWorker.register(api)).poll_one()
    assert (polled["task_id"], polled["parameters"]) == (failed, edited["parameters"])
    assert (await store.audit.page()).entries[0].after == {"status": "queued", "parameters": "changed"}


async def test_many_are_replayed_or_purged_by_any_filter(api: httpx.AsyncClient, store: Store) -> None:
    failed = await fail_some(api, "draw", "write", "draw")
    assert good(await api.post(f"{DLQ}/purge", json={"text": "other"})) == {"purged": []}
    purged = good(await api.post(f"{DLQ}/purge", json={"task_type": "draw", "text": "NO"}))["purged"]
    assert sorted(purged) == sorted([failed[0], failed[2]])
    wanted = {"code": "error", "status": "failed"}
    assert good(await api.post(f"{DLQ}/replay", json=wanted)) == {"replayed": [failed[1]]}
    replayed, removed, nothing = (await store.audit.page()).entries
    assert (replayed.act, replayed.subject) == ("replay", "status failed, code error")
    assert (removed.act, removed.after["count"], nothing.after["count"]) == ("purge", 2, 0)
    refused(await api.post(f"{DLQ}/purge", json={"since": "soon"}), 422, "invalid_input", "since")


async def test_a_step_is_not_purged_and_has_no_parameters_of_its_own(
    api: httpx.AsyncClient, store: Store
) -> None:
    await store.jobs.submit(NewJob(feature_name="story", stages=[(NewStep("chat", "chat"),)]))
    worker = await HttpWorker.register(api)
    step = await worker.poll_one()
    good(await worker.fail(step, message="no", retriable=False))
    assert good(await api.post(f"{DLQ}/purge", json={})) == {"purged": []}
    answer = await api.post(f"{DLQ}/{step['task_id']}/replay", json={"parameters": {}})
    refused(answer, 422, "invalid_input", "parameters")
    assert (await task(api, step["task_id"]))["status"] == "failed"


async def test_with_a_step_its_job_is_resumed(api: httpx.AsyncClient, store: Store) -> None:
    stages = [(NewStep("chat", "chat"), NewStep("draw", "draw"))]
    worker = await HttpWorker.register(api, capacity=100)
    jobs, steps = list[str](), list[list[str]]()
    for _ in range(2):
        jobs.append((await store.jobs.submit(NewJob(feature_name="story", stages=stages))).job_id)
        polled = [await worker.poll_one() for _ in range(2)]
        for one in polled:
            good(await worker.fail(one, message="no", retriable=False))
        steps.append(sorted(one["task_id"] for one in polled))
    (alone,) = await fail_some(api, "draw")
    answer = good(await api.post(f"{DLQ}/{steps[0][1]}/replay"))
    assert sorted(answer["replayed"]) == steps[0]
    assert (await store.jobs.get(jobs[0])).status == "RUNNING"
    rest = good(await api.post(f"{DLQ}/replay"))["replayed"]
    assert sorted(rest) == sorted([*steps[1], alone])
    assert (await store.jobs.get(jobs[1])).status == "RUNNING"
    assert good(await api.get(DLQ))["tasks"] == []


async def test_one_is_purged_and_forgotten(api: httpx.AsyncClient, store: Store) -> None:
    one, two = await fail_some(api, "draw", "draw")
    assert good(await api.delete(f"{DLQ}/{one}")) == {"task_id": one, "purged": True}
    refused(await api.delete(f"{DLQ}/{one}"), 404, "unknown_task")
    assert ids(good(await api.get(DLQ))["tasks"]) == [two]
    assert [entry.act for entry in (await store.audit.page()).entries] == ["purge"]


async def test_a_waiting_task_is_not_among_them(api: httpx.AsyncClient) -> None:
    waiting = (await submit(api))["task_id"]
    refused(await api.delete(f"{DLQ}/{waiting}"), 409, "not_purgeable")
    refused(await api.post(f"{DLQ}/{waiting}/replay"), 409, "not_replayable")
    refused(await api.post(f"{DLQ}/{NO_TASK}/replay"), 404, "unknown_task")
    assert good(await api.get(DLQ))["tasks"] == []


async def test_one_whose_limit_is_gone_is_refused_alone_and_passed_over_among_many(
    api: httpx.AsyncClient, store: Store
) -> None:
    worker = await HttpWorker.register(api, capacity=100)
    other = await submit(api, "other", concurrency_group="g", concurrency_limit=2, delay_seconds=600)
    specs: list[dict[str, Any]] = [
        {"concurrency_group": "own", "concurrency_limit": 1},
        {"limits": {"g": 1}},
        {"concurrency_group": "own", "concurrency_limit": 1},
    ]
    failed = []
    for spec in specs:
        await submit(api, "draw", **spec)
        polled = await worker.poll_one()
        good(await worker.fail(polled, message="no", retriable=False))
        failed.append(polled["task_id"])
    await store.cancel(other["task_id"])
    answer = good(await api.post(f"{DLQ}/replay"))
    assert sorted(answer["replayed"]) == sorted([failed[0], failed[2]])
    refused(await api.post(f"{DLQ}/{failed[1]}/replay"), 422, "unknown_limit", "limits.g")
