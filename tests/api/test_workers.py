"""Workers that use only HTTP: register, poll, report, beat, release, drain."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from fairlead.model.states import State
from fairlead.store.store import Store
from tests.api.requests import NO_TASK, TASKS, WORKERS, HttpWorker, good, ids, refused, submit, task
from tests.waiting import wait_until

NOBODY = "01890000-0000-7000-8000-00000000dead"


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {
        "MAX_CONCURRENT_TASKS": "3",
        "HIGH_PRIORITY_RESERVED": "1",
        "FAIRLEAD_WORKER__HEARTBEAT_SECONDS": "2",
        "FAIRLEAD_RETRY__BASE_SECONDS": "0.01",
    }


# Registering


async def test_a_worker_learns_its_id_and_how_to_stay_alive(api: httpx.AsyncClient, store: Store) -> None:
    facts = {"capabilities": ["gpu"], "capacity": 4, "reserve": 1, "task_types": ["draw"]}
    worker = await HttpWorker.register(api, **facts, name="studio", version="1.2")
    assert worker.registered["heartbeat_seconds"] == 2
    assert worker.registered["lease_seconds"] == 6
    assert worker.registered["poll_interval_ms"] > 0
    (known,) = (await store.stats()).workers
    assert (known.worker_id, known.name, known.version) == (worker.id, "studio", "1.2")
    assert (known.capacity, known.reserve, known.task_types) == (4, 1, ("draw",))


@pytest.mark.parametrize(
    ("facts", "capacity", "reserve"), [({}, 3, 1), ({"capacity": 9}, 9, 1), ({"capacity": 1}, 1, 0)]
)
async def test_options_that_a_worker_omits_come_from_the_settings(
    api: httpx.AsyncClient, store: Store, facts: dict[str, Any], capacity: int, reserve: int
) -> None:
    good(await api.post(f"{WORKERS}/register", json=facts), 201)
    (known,) = (await store.stats()).workers
    assert (known.capacity, known.reserve) == (capacity, reserve)


async def test_people_see_the_workers(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api, name="studio", capabilities=["gpu"])
    (seen,) = good(await api.get("/api/v1/workers"))["workers"]
    assert (seen["worker_id"], seen["name"], seen["status"]) == (worker.id, "studio", "active")
    assert (seen["capacity"], seen["current_load"], seen["capabilities"]) == (5, 0, ["gpu"])


async def test_an_unknown_worker_has_to_register(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for worker in [NOBODY, "w", "%7B%7D%3A*", "a%0Ab", "%00"]:
        for act, body in [("poll", {"available_capacity": 1}), ("heartbeat", {"current_load": 0})]:
            with subtests.test(worker=worker, act=act, body=body):
                refused(await api.post(f"{WORKERS}/{worker}/{act}", json=body), 404, "unknown_worker")


async def test_an_unknown_worker_cannot_be_drained(api: httpx.AsyncClient) -> None:
    refused(await api.post(f"/api/v1/workers/{NOBODY}/drain"), 404, "unknown_worker")


# Polling


async def test_a_poll_gives_tasks_with_all_that_a_worker_needs(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    given = await submit(api, "draw", parameters={"n": 1}, priority="high", timeout_seconds=30, trace_id="t1")
    polled = await worker.poll_one()
    fence, *times = [polled.pop(name) for name in ("fence", "deadline", "created_at", "started_at")]
    assert polled.pop("queued_at") == times[1]
    assert polled == {
        "task_id": given["task_id"],
        "task_type": "draw",
        "parameters": {"n": 1},
        "timeout_seconds": 30.0,
        "trace_id": "t1",
        "traceparent": None,
        "reported_fence": None,
        "attempt": 1,
        "tier": None,
        "bounded": False,
        "interactive": False,
        "priority": "high",
        "job_id": None,
        "effective_priority": "high",
        "user_id": None,
        "tenant": None,
        "max_retries": 8,
        "retry_count": 0,
        "crash_count": 0,
        "loss_count": 0,
        "step": None,
    }
    shown = await task(api, given["task_id"])
    assert [fence, *times] == [shown[name] for name in ("fence", "deadline", "created_at", "started_at")]
    assert 0 < fence < 2**53, "JSON has no larger numbers"


async def test_a_poll_returns_no_more_than_there_is_room_for(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api, capacity=3, reserve=0)
    for _ in range(5):
        await submit(api)
    assert len(await worker.poll(2)) == 2
    assert len(await worker.poll(9)) == 1
    assert await worker.poll(9) == []


async def test_a_poll_without_room_gives_nothing_at_once(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    assert await worker.poll(0, wait_seconds=30) == []


async def test_only_tasks_of_its_types_and_capabilities_are_given(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api, task_types=["draw"], capabilities=["gpu"])
    await submit(api, "write")
    await submit(api, "draw", required_capabilities=["tpu"])
    mine = await submit(api, "draw", required_capabilities=["gpu"])
    assert ids(await worker.poll()) == [mine["task_id"]]


async def test_the_capabilities_of_a_poll_count_from_that_poll_on(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api, capabilities=["gpu"])
    gpu = await submit(api, required_capabilities=["gpu"])
    assert await worker.poll(capabilities=["cpu"]) == []
    assert await worker.poll() == []
    assert ids(await worker.poll(capabilities=["cpu", "gpu"])) == [gpu["task_id"]]


async def test_a_poll_whose_answer_was_lost_is_answered_again(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    first = await worker.poll(1, request_id="r1")
    await submit(api)
    assert await worker.poll(1, request_id="r1") == first
    assert ids(await worker.poll(1, request_id="r2")) != ids(first)


# Results


async def test_a_completed_task_has_its_result(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    polled = await worker.poll_one()
    assert good(await worker.complete(polled, {"words": 3})) == {"accepted": True}
    ended = await task(api, polled["task_id"])
    assert (ended["status"], ended["result"]) == ("completed", {"words": 3})


@pytest.mark.parametrize(
    ("error", "status", "kept"),
    [
        ({"message": "no", "retriable": False}, "failed", {"code": "error", "message": "no"}),
        ({"message": "no", "retriable": True, "code": "E7"}, "delayed", {"code": "E7", "message": "no"}),
        ({"message": "later", "retriable": True, "retry_after_seconds": 60}, "delayed", {"message": "later"}),
        ({}, "delayed", {"code": "error", "message": ""}),
    ],
)
async def test_a_failed_task_is_tried_again_or_not(
    api: httpx.AsyncClient, error: dict[str, Any], status: str, kept: dict[str, Any]
) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    polled = await worker.poll_one()
    assert good(await worker.fail(polled, **error)) == {"accepted": True}
    ended = await task(api, polled["task_id"])
    assert ended["status"] in ((status,) if "retry_after_seconds" in error else (status, "queued"))
    assert kept.items() <= ended["error"].items()
    assert ended["retry_count"] == (0 if status == "failed" else 1)


async def test_a_failure_without_an_error_is_one_too(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    await submit(api, max_retries=0)
    polled = await worker.poll_one()
    good(await worker.post("result", task_id=polled["task_id"], status="failed"))
    assert (await task(api, polled["task_id"]))["status"] == "dead_letter"


async def test_without_a_fence_the_worker_must_hold_the_lease(api: httpx.AsyncClient) -> None:
    holder, other = await HttpWorker.register(api), await HttpWorker.register(api)
    await submit(api)
    polled = await holder.poll_one()
    report = {"task_id": polled["task_id"], "status": "completed"}
    refused(await other.post("result", **report), 409, "fenced")
    good(await holder.post("result", **report))


async def test_a_stale_fence_is_refused_and_changes_nothing(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    polled = await worker.poll_one()
    good(await worker.post("release", task_ids=[polled["task_id"]]))
    again = await worker.poll_one()
    assert again["fence"] > polled["fence"]
    refused(await worker.complete(polled, "old"), 409, "fenced")
    assert (await task(api, polled["task_id"]))["status"] == "executing"
    good(await worker.complete(again, "new"))
    assert (await task(api, polled["task_id"]))["result"] == "new"


async def test_a_repeated_result_is_answered_as_the_first_was(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    polled = await worker.poll_one()
    for _ in range(2):
        assert good(await worker.complete(polled, 1)) == {"accepted": True}


async def test_a_result_of_no_task_is_refused(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    for task_id in (NO_TASK, "x", "{}:*\n", ""):
        answer = await worker.post("result", task_id=task_id, status="completed")
        refused(answer, 404, "unknown_task")


async def test_many_results_are_answered_one_by_one(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api, reserve=0)
    for _ in range(3):
        await submit(api, max_retries=0)
    one, two, three = await worker.poll()
    results = [
        {"task_id": one["task_id"], "status": "failed", "error": {"message": "no"}},
        {"task_id": two["task_id"], "status": "completed", "result": 2, "fence": two["fence"]},
        {"task_id": three["task_id"], "status": "completed", "fence": 99},
        {"task_id": NO_TASK, "status": "completed"},
    ]
    answer = good(await worker.post("result", results=results))
    assert answer["accepted"] is False
    assert [(row["accepted"], row.get("status") or row["code"]) for row in answer["results"]] == [
        (True, "dead_letter"),
        (True, "completed"),
        (False, "fenced"),
        (False, "unknown_task"),
    ]
    assert [row["task_id"] for row in answer["results"]] == [one["task_id"] for one in results]


# Staying alive


async def test_a_heartbeat_extends_leases_and_returns_deadlines(api: httpx.AsyncClient, store: Store) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    polled = await worker.poll_one()
    before = (await store.get(polled["task_id"])).lease_until or 0

    async def prolonged() -> bool:
        beat = await worker.heartbeat(current_load=1)
        assert beat["deadlines"] == {polled["task_id"]: polled["deadline"]}
        assert (beat["acknowledged"], beat["cancel"], beat["status"]) == (True, [], "active")
        return ((await store.get(polled["task_id"])).lease_until or 0) > before

    await wait_until(prolonged)


async def test_a_heartbeat_returns_what_to_stop(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    polled = await worker.poll_one()
    await api.delete(f"{TASKS}/{polled['task_id']}")
    beat = await worker.heartbeat()
    assert (beat["cancel"], beat["deadlines"]) == ([polled["task_id"]], {})
    refused(await worker.complete(polled), 409, "fenced")
    assert (await worker.heartbeat())["cancel"] == []


async def test_a_heartbeat_renews_only_the_leases_that_it_names(api: httpx.AsyncClient, store: Store) -> None:
    """A task whose poll was never answered is in nobody's hands: its lease must expire."""
    worker = await HttpWorker.register(api)
    for _ in range(2):
        await submit(api)
    in_hand, never_received = ids(await worker.poll(2))
    before = (await store.get(never_received)).lease_until

    async def prolonged() -> bool:
        beat = await worker.heartbeat(task_ids=[in_hand])
        assert (list(beat["leases"]), beat["cancel"]) == ([in_hand], [])
        return ((await store.get(in_hand)).lease_until or 0) > (before or 0)

    await wait_until(prolonged)
    assert (await worker.heartbeat(task_ids=[]))["leases"] == {}
    assert (await store.get(never_received)).lease_until == before


async def test_a_heartbeat_that_names_a_lost_task_is_answered_with_it(api: httpx.AsyncClient) -> None:
    worker, other = await HttpWorker.register(api), await HttpWorker.register(api)
    await submit(api)
    polled = await other.poll_one()
    beat = await worker.heartbeat(task_ids=[polled["task_id"], NO_TASK])
    assert beat["cancel"] == beat["lost"] == [polled["task_id"], NO_TASK]


async def test_tasks_that_a_hanging_worker_has_not_begun_are_queued_again(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    for _ in range(2):
        await submit(api)
    first, second = await worker.poll(2)
    for _ in range(2):  # the answer may be lost
        answer = good(await worker.post("stall", request_id="s1", begun=[first["fence"]]))
        assert answer["released"] == [{"task_id": second["task_id"], "fence": second["fence"]}]
    refused(await worker.complete(second), 409, "fenced")
    other = await HttpWorker.register(api)
    again = await other.poll_one()
    assert (again["task_id"], again["attempt"]) == (second["task_id"], 1)
    good(await worker.complete(first))


async def test_a_heartbeat_brings_progress_and_output(api: httpx.AsyncClient, store: Store) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    polled = await worker.poll_one()
    progress = {"fraction": 0.5, "message": "half", "output": ["line 1", {"line": 2}]}
    await worker.heartbeat(progress={polled["task_id"]: progress})
    assert (await task(api, polled["task_id"]))["progress"] == {"fraction": 0.5, "message": "half"}
    assert [one.chunk for one in await store.outputs(polled["task_id"])] == ["line 1", {"line": 2}]


async def test_progress_of_a_task_that_is_not_its_own_is_to_be_stopped(api: httpx.AsyncClient) -> None:
    worker, other = await HttpWorker.register(api), await HttpWorker.register(api)
    await submit(api)
    polled = await other.poll_one()
    progress = {"fraction": 0.1}
    beat = await worker.heartbeat(progress={polled["task_id"]: progress, NO_TASK: progress})
    assert sorted(beat["cancel"]) == sorted([polled["task_id"], NO_TASK])
    assert (await task(api, polled["task_id"]))["progress"] is None


async def test_output_that_is_too_large_is_refused(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    polled = await worker.poll_one()
    progress = {polled["task_id"]: {"output": ["x" * 65_536]}}
    refused(await worker.post("heartbeat", progress=progress), 413, "too_large", "chunks[0]")


async def test_a_silent_worker_is_declared_dead_and_its_task_runs_elsewhere(
    api: httpx.AsyncClient, store: Store
) -> None:
    silent, other = await HttpWorker.register(api), await HttpWorker.register(api)
    await submit(api)
    polled = await silent.poll_one()

    async def declared_dead() -> bool:
        await other.heartbeat()
        return (await silent.post("heartbeat")).status_code == 404

    # a request of the worker shows that it is alive, so the test reads the store
    async def is_queued() -> bool:
        await other.heartbeat()
        return (await store.get(polled["task_id"])).status is State.QUEUED

    await wait_until(is_queued, 40)
    await wait_until(declared_dead, 40)
    again = await other.poll_one()
    assert (again["task_id"], again["attempt"]) == (polled["task_id"], 2)
    assert again["fence"] > polled["fence"]
    refused(await silent.post("poll", available_capacity=1), 404, "unknown_worker")
    refused(await silent.complete(polled), 409, "fenced")
    assert (await task(api, polled["task_id"]))["crash_count"] == 1
    good(await other.complete(again))


# Giving back, draining


async def test_released_tasks_return_unrun(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api, reserve=0)
    first = [await submit(api) for _ in range(2)]
    polled = await worker.poll()
    answer = good(await worker.post("release", task_ids=[*ids(polled), NO_TASK]))
    assert [(row["accepted"], row.get("status") or row["code"]) for row in answer["results"]] == [
        (True, "queued"),
        (True, "queued"),
        (False, "unknown_task"),
    ]
    back = await task(api, first[0]["task_id"])
    assert (back["status"], back["retry_count"], back["crash_count"]) == ("queued", 0, 0)
    assert ids(await worker.poll()) == ids(first)


async def test_a_drained_worker_gets_nothing_more(api: httpx.AsyncClient, store: Store) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    answer = await api.post(f"/api/v1/workers/{worker.id}/drain", headers={"x-reason": "new disk"})
    assert good(answer) == {"worker_id": worker.id, "status": "draining"}
    polled = good(await worker.post("poll", available_capacity=1, wait_seconds=30))
    assert (polled["tasks"], polled["draining"]) == ([], True)
    assert (await worker.heartbeat())["status"] == "draining"
    (entry,) = (await store.audit.page()).entries
    assert (entry.act, entry.subject, entry.reason, entry.actor) == (
        "drain",
        worker.id,
        "new disk",
        "anybody",
    )


async def test_a_worker_may_drain_itself(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    await submit(api)
    polled = await worker.poll_one()
    assert (await worker.heartbeat(status="draining"))["status"] == "draining"
    good(await worker.complete(polled))
    assert good(await worker.post("poll", available_capacity=1))["draining"] is True
