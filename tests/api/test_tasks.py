"""Tasks over HTTP: they are kept as requested, and a refusal says why."""

import re
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from fairlead.model.reports import Completed, Failed
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.requests import NO_TASK, TASKS, HttpWorker, good, refused, submit, task
from tests.store.namespace import claim_one

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_ADMISSION__MAX_QUEUED_PER_USER": "3"}


# Submitting


async def test_a_task_of_one_field_is_queued_with_the_defaults(api: httpx.AsyncClient) -> None:
    answer = await submit(api)
    assert UUID.fullmatch(answer.pop("task_id"))
    assert answer == {
        "status": "queued",
        "priority": "medium",
        "effective_priority": "medium",
        "queue_position": 1,
        "estimate": None,
        "blocked_by": [],
        "warnings": ["no worker serves 'echo' yet; it waits until one does"],
    }


async def test_a_type_that_no_worker_serves_is_warned_about_and_explained(
    api: httpx.AsyncClient, store: Store
) -> None:
    await store.workers.register("w", task_types=["render_frame"])
    warning = "no worker serves 'rendr_frame' yet; it waits until one does"
    submitted = await submit(api, "rendr_frame")
    assert submitted["warnings"] == [warning]
    assert (await submit(api, "render_frame"))["warnings"] == []
    tasks = [{"task_type": "rendr_frame"}, {"task_type": "render_frame"}, {"task_type": "no type!"}]
    batch = good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)["tasks"]
    assert [one.get("warnings") for one in batch] == [[warning], [], None]
    explained = good(await api.get(f"{TASKS}/{submitted['task_id']}/explain"))
    assert explained["sentence"].endswith("'rendr_frame': did you mean 'render_frame'?")
    facts = ("task_type", "type_unserved", "missing_capabilities", "similar_type")
    assert [explained[name] for name in facts] == ["rendr_frame", True, [], "render_frame"]


async def test_every_field_of_a_task_is_kept_as_requested(api: httpx.AsyncClient, store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=2))
    options: dict[str, Any] = {
        "parameters": {"prompt": "a robot", "size": [1, 2.5, None, {"deep": True}]},
        "priority": "high",
        "user_id": "ann",
        "required_capabilities": ["big", "gpu"],
        "limits": {"gpu": 2},
        "concurrency_group": "renders",
        "concurrency_limit": 3,
        "timeout_seconds": 12.5,
        "max_retries": 7,
        "max_wait_seconds": 60,
        "delay_seconds": 30,
        "idempotency_key": "k1",
        "trace_id": "t-1",
    }
    answer = await submit(api, "render", **options)
    assert (answer["status"], answer["queue_position"]) == ("delayed", None)
    kept = await task(api, answer["task_id"])
    assert {name: kept[name] for name in options} == {**options, "limits": {"gpu": 2, "renders": 1}}
    assert (kept["task_type"], kept["tenant"], kept["job_id"]) == ("render", None, None)
    assert TIME.fullmatch(kept["created_at"]) and TIME.fullmatch(kept["run_at"])
    assert (await store.limits.get("renders")).limit == 3


async def test_a_defined_group_is_left_unchanged(api: httpx.AsyncClient, store: Store) -> None:
    await submit(api, concurrency_group="g", concurrency_limit=2)
    await submit(api, concurrency_group="g", concurrency_limit=9)
    assert (await store.limits.get("g")).limit == 2


async def test_a_task_with_a_time_to_run_at_waits_for_it(api: httpx.AsyncClient) -> None:
    answer = await submit(api, run_at="2100-01-31T13:00:00.250+01:00")
    assert answer["status"] == "delayed"
    assert (await task(api, answer["task_id"]))["run_at"] == "2100-01-31T12:00:00.250Z"


async def test_positions_count_those_of_better_priorities(api: httpx.AsyncClient) -> None:
    positions = [
        (await submit(api, priority=one))["queue_position"] for one in ("low", "high", "medium", "low")
    ]
    assert positions == [1, 1, 2, 4]


async def test_the_answer_names_the_limits_without_room(api: httpx.AsyncClient, store: Store) -> None:
    for name in ("closed", "open", "shut"):
        await store.limits.set(name, Slots(limit=0 if name != "open" else 5))
    answer = await submit(api, limits={"shut": 1, "open": 1, "closed": 1})
    assert answer["blocked_by"] == ["closed", "shut"]


async def test_the_trace_comes_from_the_header_of_the_w3c_if_it_is_one(api: httpx.AsyncClient) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    for header, kept in ((f"00-{trace}-00f067aa0ba902b7-01", trace), ("00-nonsense", None)):
        answer = await api.post(TASKS, json={"task_type": "echo"}, headers={"traceparent": header})
        assert (await task(api, good(answer, 201)["task_id"]))["trace_id"] == kept


async def test_a_task_that_can_never_run_is_refused(api: httpx.AsyncClient, store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=2))
    for options, code, field in (
        ({"limits": {"nope": 1}}, "unknown_limit", "limits.nope"),
        ({"limits": {"gpu": 3}}, "too_many_units", "limits.gpu"),
        ({"duration": "fast"}, "unknown_tier", "duration"),
    ):
        answer = await api.post(TASKS, json={"task_type": "echo", **options})
        refused(answer, 422, code, field)


async def test_a_full_queue_says_when_to_retry(api: httpx.AsyncClient) -> None:
    for _ in range(3):
        await submit(api, user_id="ann")
    answer = await api.post(TASKS, json={"task_type": "echo", "user_id": "ann"})
    assert refused(answer, 429, "queue_full")["waiting"] == 3
    assert answer.headers["retry-after"] == "60", "no task has ended in the last minute"
    await submit(api, user_id="bob")
    worker = await HttpWorker.register(api)
    for one in await worker.poll():
        good(await worker.complete(one))
    for _ in range(3):
        await submit(api, user_id="ann")
    answer = await api.post(TASKS, json={"task_type": "echo", "user_id": "ann"})
    assert 1 <= int(answer.headers["retry-after"]) <= 15, "four have"


# Looking


async def test_a_task_is_reported_from_its_queue_to_its_end(api: httpx.AsyncClient, store: Store) -> None:
    first, second = [(await submit(api))["task_id"] for _ in range(2)]
    assert [(await task(api, one))["queue_position"] for one in (first, second)] == [1, 2]
    await store.workers.register("w")
    claimed = await claim_one(store)
    running = await task(api, claimed.task_id)
    assert (running["status"], running["assigned_worker_id"]) == ("executing", "w")
    assert running["fence"] == claimed.fence
    assert TIME.fullmatch(running["started_at"]) and TIME.fullmatch(running["deadline"])
    assert running["queue_position"] is None
    await store.complete("w", Completed(claimed.task_id, claimed.fence, {"words": ["a", 1]}))
    ended = await task(api, claimed.task_id)
    assert (ended["status"], ended["result"], ended["error"]) == ("completed", {"words": ["a", 1]}, None)
    assert TIME.fullmatch(ended["completed_at"])


async def test_a_failed_task_says_why(api: httpx.AsyncClient, store: Store) -> None:
    await submit(api)
    await store.workers.register("w")
    claimed = await claim_one(store)
    await store.fail("w", Failed(claimed.task_id, claimed.fence, "bad", "no picture", retriable=False))
    failed = await task(api, claimed.task_id)
    assert (failed["status"], failed["error"]) == (
        "failed",
        {"code": "bad", "message": "no picture", "retriable": False, "traceback": None},
    )


async def test_an_unknown_id_is_unknown_to_every_route(
    api: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    for task_id in [NO_TASK, "nothing", NO_TASK.upper(), "%7B%7D%3A*", "a%0Ab", "%00", "%FF"]:
        with subtests.test(task_id=task_id):
            for method, path in (
                ("GET", f"{TASKS}/{task_id}"),
                ("DELETE", f"{TASKS}/{task_id}"),
                ("GET", f"{TASKS}/{task_id}/explain"),
                ("GET", f"/task/{task_id}"),
                ("POST", f"/api/v1/dlq/{task_id}/replay"),
                ("DELETE", f"/api/v1/dlq/{task_id}"),
            ):
                refused(await api.request(method, path), 404, "unknown_task")


async def test_explain_says_what_a_task_waits_for(api: httpx.AsyncClient, store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w", capacity=5)
    await submit(api, limits={"gpu": 1})
    waiting = await submit(api, limits={"gpu": 1})
    await claim_one(store)
    answer = good(await api.get(f"{TASKS}/{waiting['task_id']}/explain"))
    assert answer["sentence"].startswith("It waits for a unit of gpu, which w holds until ")
    assert [(one["limit"], one["used"], one["of"]) for one in answer["blocked_by"]] == [("gpu", 1, 1)]
    assert answer["effective_priority"] == "medium" and TIME.fullmatch(answer["promotes_at"])


async def test_stats_count_queues_and_workers(api: httpx.AsyncClient, store: Store) -> None:
    await store.workers.register("w", capacity=4)
    for priority in ("high", "low", "low"):
        await submit(api, priority=priority)
    claimed = await claim_one(store)
    await store.complete("w", Completed(claimed.task_id, claimed.fence))
    await claim_one(store)
    stats = good(await api.get("/api/v1/queue/stats"))
    assert {name: queue["depth"] for name, queue in stats["queues"].items()} == {
        "high": 0,
        "medium": 0,
        "low": 1,
    }
    assert stats["workers"] == {
        "active": 1,
        "draining": 0,
        "dead": 0,
        "total_capacity": 4,
        "used_capacity": 1,
    }
    assert stats["throughput"]["completed_last_minute"] == 1


# Cancelling


async def test_a_task_is_cancelled_and_to_cancel_it_again_changes_nothing(api: httpx.AsyncClient) -> None:
    one = (await submit(api))["task_id"]
    for _ in range(2):
        cancelled = good(await api.delete(f"{TASKS}/{one}"))
        assert cancelled == {"task_id": one, "status": "cancelled", "worker_id": None}
    assert (await task(api, one))["status"] == "cancelled"


async def test_a_task_that_has_ended_cannot_be_cancelled(api: httpx.AsyncClient, store: Store) -> None:
    await submit(api)
    await store.workers.register("w")
    claimed = await claim_one(store)
    await store.complete("w", Completed(claimed.task_id, claimed.fence))
    refused(await api.delete(f"{TASKS}/{claimed.task_id}"), 409, "already_finished")


# Addresses


async def test_an_unknown_path_is_not_found(api: httpx.AsyncClient) -> None:
    for path in (
        "/nothing",
        "/api/v1/nothing",
        "/api/v1/tasks/",
        f"{TASKS}/{NO_TASK}/explain/more",
        "/task/a%2Fb",
    ):
        refused(await api.get(path), 404, "not_found")


async def test_another_method_gets_the_list_of_allowed_ones(api: httpx.AsyncClient) -> None:
    for method in ("PATCH", "PUT", "OPTIONS"):
        answer = await api.request(method, TASKS)
        refused(answer, 405, "method_not_allowed")
        assert answer.headers["allow"] == "GET, HEAD, POST"


async def test_head_is_get_without_the_body(api: httpx.AsyncClient) -> None:
    answer = await api.head("/healthz")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 0
