"""Jobs over HTTP: they run as requested, and a refusal lists what is available."""

from typing import Any

import httpx
import pytest

from fairlead.model.reports import Completed, Failed
from fairlead.model.task import Task
from fairlead.settings import Slots, TaskSettings
from fairlead.settings.pipelines import Stages
from fairlead.store.store import Store
from fairlead.times import read_time
from tests.api.requests import NO_TASK, TASKS, good, refused, wait_in_vain
from tests.store.namespace import claim_one, raw

JOBS = "/api/v1/jobs"
STORY: Stages = (("outline",), ("draw", "narrate"), ("bind",))
TYPES = {name: TaskSettings() for stage in STORY for name in stage}


@pytest.fixture
async def store(store: Store) -> Store:
    await store.declare("code", TYPES, {}, {"story": STORY, "note": (("outline",),)})
    await store.workers.register("w", capacity=9)
    return store


async def submit(api: httpx.AsyncClient, feature_name: str = "story", **options: Any) -> dict[str, Any]:
    return good(await api.post(JOBS, json={"feature_name": feature_name, **options}), 201)


async def job(api: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    return good(await api.get(f"{JOBS}/{job_id}"))


async def complete(store: Store, task: Task, result: Any = None) -> None:
    await store.complete("w", Completed(task.task_id, task.fence, result))


async def fail(store: Store, task: Task, retriable: bool = False) -> None:
    await store.fail("w", Failed(task.task_id, task.fence, "no_ink", "the pen is dry", retriable))


async def stuck(api: httpx.AsyncClient, store: Store) -> str:
    """A job that was not started in time."""
    job_id: str = (await submit(api, "note", max_wait_seconds=3600))["job_id"]
    await wait_in_vain(store, job_id, 3600)
    return job_id


# Submitting


async def test_a_job_runs_as_requested(api: httpx.AsyncClient, store: Store) -> None:
    options: dict[str, Any] = {
        "input_data": {"topic": "a cat"},
        "user_id": "ann",
        "priority": "high",
        "trace_id": "t-1",
    }
    submitted = await submit(api, **options)
    assert (submitted["status"], submitted["priority"], submitted["repeated"]) == ("PENDING", "high", False)
    task = await claim_one(store)
    assert (task.task_type, task.job_id, task.step, task.user_id) == (
        "outline",
        submitted["job_id"],
        0,
        "ann",
    )
    assert (task.priority.word, task.trace_id) == ("high", "t-1")
    assert task.parameters == {"params": {"topic": "a cat"}, "context": {}}


async def test_a_job_can_be_read_while_it_runs(api: httpx.AsyncClient, store: Store) -> None:
    job_id = (await submit(api, input_data={"topic": "a cat"}))["job_id"]
    first = await job(api, job_id)
    assert (first["status"], first["current_step_index"], first["total_steps"]) == ("PENDING", 0, 4)
    assert (first["context"], first["error"], first["completed_at"]) == ({}, None, None)
    assert (first["priority"], first["original_priority"], first["user_id"]) == ("medium", "medium", None)
    assert [(step["name"], step["stage"]) for step in first["steps"]] == [
        ("outline", 0),
        ("draw", 1),
        ("narrate", 1),
        ("bind", 2),
    ]

    await complete(store, await claim_one(store), {"chapters": 2})
    half_way = await job(api, job_id)
    assert (half_way["status"], half_way["current_step_index"]) == ("RUNNING", 1)
    outline = half_way["context"]["step_0_outline"]
    assert (outline["status"], outline["data"]) == ("SUCCESS", {"chapters": 2})
    assert outline["metrics"]["execution_time_ms"] >= 0
    assert half_way["context"]["step_0_outline__attempts"] == 1

    for _ in range(3):
        await complete(store, await claim_one(store))
    done = await job(api, job_id)
    assert (done["status"], done["current_step_index"]) == ("COMPLETED", 4)
    assert done["completed_at"] >= done["queued_at"]


async def test_the_tasks_of_its_steps_can_be_looked_at(api: httpx.AsyncClient, store: Store) -> None:
    submitted = await submit(api)
    step = (await job(api, submitted["job_id"]))["steps"][0]
    task = good(await api.get(f"{TASKS}/{step['task_id']}"))
    assert (task["job_id"], task["task_type"]) == (submitted["job_id"], "outline")


@pytest.mark.parametrize("way", ["body", "header"])
async def test_the_same_key_is_the_same_job(api: httpx.AsyncClient, store: Store, way: str) -> None:
    async def ask(topic: str) -> httpx.Response:
        body: dict[str, Any] = {"feature_name": "story", "input_data": {"topic": topic}}
        if way == "body":
            return await api.post(JOBS, json={**body, "idempotency_key": "order-7"})
        return await api.post(JOBS, json=body, headers={"idempotency-key": "order-7"})

    first = good(await ask("a"), 201)
    again = good(await ask("a"), 200)
    assert again == {**first, "repeated": True}
    refused(await ask("b"), 409, "idempotency_conflict")
    assert len((await store.list_tasks()).tasks) == 1


async def test_a_job_may_bring_its_own_id(api: httpx.AsyncClient, store: Store) -> None:
    assert (await submit(api, job_id=NO_TASK))["job_id"] == NO_TASK
    again = good(await api.post(JOBS, json={"feature_name": "story", "job_id": NO_TASK}), 200)
    assert (again["job_id"], again["repeated"]) == (NO_TASK, True)
    other = {"feature_name": "story", "job_id": NO_TASK, "priority": "high"}
    refused(await api.post(JOBS, json=other), 409, "idempotency_conflict")


async def test_an_unknown_pipeline_is_refused_with_the_known_ones(
    api: httpx.AsyncClient, store: Store
) -> None:
    problem = refused(
        await api.post(JOBS, json={"feature_name": "storry"}), 422, "unknown_pipeline", "feature_name"
    )
    assert "there are note, story" in problem["detail"]


async def test_without_any_pipeline_the_refusal_says_how_to_define_one(
    api: httpx.AsyncClient, store: Store
) -> None:
    await raw(store).delete(*map(store.connection.keys.key, ("pipelines", "types", "declarations")))
    problem = (await api.post(JOBS, json={"feature_name": "story"})).json()
    assert "none: add [pipelines], or call fl.pipeline" in problem["detail"]


async def test_an_unknown_step_is_named_with_the_nearest_known_one(
    api: httpx.AsyncClient, store: Store
) -> None:
    await store.declare("code", TYPES, {}, {"story": (("outlin",),)})
    answer = await api.post(JOBS, json={"feature_name": "story"})
    problem = refused(answer, 422, "invalid_input", "pipelines.story")
    assert "did you mean 'outline'?" in problem["errors"][0]["message"]


async def test_a_body_that_cannot_be_is_refused(
    api: httpx.AsyncClient, store: Store, subtests: pytest.Subtests
) -> None:
    for body, field in [
        ({}, "feature_name"),
        ({"feature_name": "a b"}, "feature_name"),
        ({"feature_name": "story", "input_data": [1]}, "input_data"),
        ({"feature_name": "story", "priority": "urgent"}, "priority"),
        ({"feature_name": "story", "max_wait_seconds": -1}, "max_wait_seconds"),
        ({"feature_name": "story", "user_id": "x" * 300}, "user_id"),
        ({"feature_name": "story", "job_id": "7"}, "job_id"),
        ({"feature_name": "story", "steps": ["outline"]}, "steps"),
    ]:
        with subtests.test(body=body, field=field):
            answer = await api.post(JOBS, json=body)
            assert answer.status_code == 422, answer.text
            assert field in answer.json()["errors"][0]["field"] + answer.json()["errors"][0]["message"]
            assert not (await store.list_tasks()).tasks


async def test_the_declarations_of_a_worker_bring_pipelines(api: httpx.AsyncClient, store: Store) -> None:
    new = {"types": {"a": {}, "b": {}}, "pipelines": {"pair": ["a", {"parallel": ["a", "b"]}]}}
    good(await api.put("/internal/declarations", json=new))
    await submit(api, "pair")
    refused(
        await api.put("/internal/declarations", json={"pipelines": {"pair": [[]]}}),
        422,
        "invalid_input",
        "pipelines.pair",
    )


async def test_steps_that_no_worker_serves_are_warned_about(api: httpx.AsyncClient, store: Store) -> None:
    await store.workers.register("w", capacity=9, task_types=["outline", "draw", "bind"])
    assert (await submit(api, "note"))["warnings"] == []
    assert (await submit(api))["warnings"] == ["no worker serves 'narrate' yet; it waits until one does"]


# Resuming and cancelling


async def test_a_job_that_was_not_started_in_time_can_be_resumed(
    api: httpx.AsyncClient, store: Store
) -> None:
    job_id = await stuck(api, store)
    error = (await job(api, job_id))["error"]
    assert (error["code"], error["retryable"], error["step"]) == ("RESOURCE_EXHAUSTED", True, 0)
    resumed = good(await api.post(f"{JOBS}/{job_id}/resume"))
    assert (resumed["job_id"], resumed["status"], resumed["skipped"]) == (job_id, "PENDING", [])
    assert (await job(api, job_id))["error"] is None
    refused(await api.post(f"{JOBS}/{job_id}/resume"), 409, "not_resumable")


async def test_a_refused_resume_says_why(api: httpx.AsyncClient, store: Store) -> None:
    job_id = (await submit(api, "note"))["job_id"]
    problem = refused(await api.post(f"{JOBS}/{job_id}/resume"), 409, "not_resumable")
    assert problem["detail"] == "The job is PENDING: only a failed one can be resumed."
    await fail(store, await claim_one(store))
    assert (await job(api, job_id))["error"] == {
        "code": "no_ink",
        "message": "the pen is dry",
        "retryable": False,
        "step": 0,
    }
    problem = refused(await api.post(f"{JOBS}/{job_id}/resume"), 409, "not_resumable")
    assert "step 0 failed for good (no_ink: the pen is dry)" in problem["detail"]


async def test_a_job_that_failed_for_good_is_resumed_by_force_and_that_is_on_record(
    api: httpx.AsyncClient, store: Store
) -> None:
    job_id = (await submit(api, "note"))["job_id"]
    await fail(store, await claim_one(store))
    answer = await api.post(f"{JOBS}/{job_id}/resume?force=true", headers={"x-reason": "new ink"})
    assert good(answer) == {"job_id": job_id, "status": "RUNNING", "skipped": []}
    (entry,) = (await store.audit.page()).entries
    assert (entry.act, entry.subject, entry.reason) == ("resume_job", job_id, "new ink")
    await complete(store, await claim_one(store))
    assert (await job(api, job_id))["status"] == "COMPLETED"


async def test_a_job_that_used_up_its_attempts_is_resumed_without_force(
    api: httpx.AsyncClient, store: Store
) -> None:
    await store.declare(
        "code", {**TYPES, "outline": TaskSettings(max_retries=0)}, {}, {"note": (("outline",),)}
    )
    job_id = (await submit(api, "note"))["job_id"]
    await fail(store, await claim_one(store), retriable=True)
    error = (await job(api, job_id))["error"]
    assert (error["code"], error["retryable"], error["step"]) == ("no_ink", True, 0)
    good(await api.post(f"{JOBS}/{job_id}/resume"))
    await complete(store, await claim_one(store))
    assert (await job(api, job_id))["status"] == "COMPLETED"


async def test_cancelling_a_job_ends_its_waiting_and_running_steps(
    api: httpx.AsyncClient, store: Store
) -> None:
    job_id = (await submit(api))["job_id"]
    await complete(store, await claim_one(store))
    running = await claim_one(store)
    assert good(await api.delete(f"{JOBS}/{job_id}")) == {"job_id": job_id, "status": "CANCELLED"}
    assert (await store.get(running.task_id)).status == "cancelled"
    assert (await job(api, job_id))["status"] == "CANCELLED"
    assert not (await store.claim("w", 5)).tasks
    good(await api.delete(f"{JOBS}/{job_id}"))  # no news
    await store.release("w")


async def test_an_ended_job_is_not_cancelled(api: httpx.AsyncClient, store: Store) -> None:
    job_id = (await submit(api, "note"))["job_id"]
    await complete(store, await claim_one(store))
    problem = refused(await api.delete(f"{JOBS}/{job_id}"), 409, "already_finished")
    assert problem["detail"] == "The job is COMPLETED already: nothing was changed."


@pytest.mark.parametrize("job_id", [NO_TASK, "nonsense"])
async def test_an_unknown_job_is_unknown(api: httpx.AsyncClient, store: Store, job_id: str) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/resume"), ("GET", "/events")):
        refused(await api.request(method, f"{JOBS}/{job_id}{path}"), 404, "unknown_job")


# Listing and explaining


async def listed(api: httpx.AsyncClient, **query: Any) -> list[str]:
    """The ids on all pages."""
    found, cursor = list[str](), ""
    while True:
        page = good(await api.get(JOBS, params={**query, "cursor": cursor}))
        found += [one["id"] for one in page["jobs"]]
        if page["next_cursor"] is None:
            return found
        cursor = page["next_cursor"]


async def test_jobs_are_listed_newest_first(api: httpx.AsyncClient, store: Store) -> None:
    ids = [(await submit(api, "note", user_id=user))["job_id"] for user in ("ann", "bob", "ann")]
    ids.append((await submit(api, user_id="ann"))["job_id"])
    await api.delete(f"{JOBS}/{ids[0]}")
    assert await listed(api, limit=3) == ids[::-1]
    assert await listed(api, status="CANCELLED") == ids[:1]
    assert await listed(api, user_id="ann", feature_name="note", status="PENDING") == [ids[2]]
    page = good(await api.get(JOBS, params={"limit": 1}))
    assert page["jobs"][0].keys() == (await job(api, ids[3])).keys()


async def test_a_list_of_jobs_that_cannot_be_is_refused(api: httpx.AsyncClient, store: Store) -> None:
    wrong: dict[str, str | int] = {
        "status": "open",
        "limit": 0,
        "feature_name": "a b",
        "cursor": "x",
        "pipeline": "p",
    }
    for name, value in wrong.items():
        refused(await api.get(JOBS, params={name: value}), 422, "invalid_input", name)


async def test_the_steps_of_a_job_have_a_status_times_and_waits(api: httpx.AsyncClient, store: Store) -> None:
    job_id = (await submit(api))["job_id"]
    await complete(store, await claim_one(store))
    first, second, _, last = (await job(api, job_id))["steps"]
    assert (first["status"], first["attempts"]) == ("completed", 1)
    assert first["queued_at"] <= first["started_at"] <= first["completed_at"] == second["queued_at"]
    waited = read_time("", first["started_at"]) - read_time("", first["queued_at"])
    assert first["waited_seconds"] == waited / 1000
    assert (second["status"], second["started_at"], second["attempts"]) == ("queued", None, 0)
    assert second["waited_seconds"] >= 0
    assert (last["status"], last["queued_at"], last["waited_seconds"]) == ("pending", None, None)


async def test_the_steps_that_a_job_waits_for_are_explained(api: httpx.AsyncClient, store: Store) -> None:
    await store.declare("code", {"outline": TaskSettings(limits={"pen": 1})}, {"pen": Slots(limit=1)})
    await submit(api, "note")
    first = await claim_one(store)
    job_id = (await submit(api, "note"))["job_id"]
    answer = good(await api.get(f"{JOBS}/{job_id}/explain"))
    assert (answer["job_id"], answer["status"]) == (job_id, "PENDING")
    assert answer["sentence"].startswith("outline: It waits for a unit of pen, which w holds until ")
    (step,) = answer["steps"]
    assert (step["step"], step["name"], step["status"]) == (0, "outline", "queued")
    assert step["blocked_by"][0]["limit"] == "pen"
    await complete(store, first)
    await fail(store, await claim_one(store))
    ended = good(await api.get(f"{JOBS}/{job_id}/explain"))
    assert (ended["steps"], ended["error"]["code"]) == ([], "no_ink")
    assert ended["sentence"] == "It failed at step 0 (no_ink): the pen is dry"
    refused(await api.get(f"{JOBS}/{NO_TASK}/explain"), 404, "unknown_job")


# What is available


async def test_pipelines_are_listed_with_their_stages(api: httpx.AsyncClient, store: Store) -> None:
    assert good(await api.get("/api/v1/pipelines")) == {
        "pipelines": [
            {"name": "note", "stages": [["outline"]]},
            {"name": "story", "stages": [["outline"], ["draw", "narrate"], ["bind"]]},
        ],
        "next_cursor": None,
    }


async def test_services_are_listed_with_their_use(api: httpx.AsyncClient, store: Store) -> None:
    llm = TaskSettings(limits={"service:llm": 1})
    limits = {"service:llm": Slots(limit=2), "gpu": Slots(limit=1)}
    await store.declare("code", {**TYPES, "service:llm": llm}, limits, {"chat": (("llm",), ("outline",))})
    for _ in range(3):
        await submit(api, "chat")
    assert len((await store.claim("w", 5)).tasks) == 2
    assert good(await api.get("/api/v1/services")) == {
        "services": [
            {
                "name": "llm",
                "limit": 2,
                "active": 2,
                "waiting": 1,
                "url": None,  # this gateway only knows its name; its URL is in the settings of others
                "timeout_seconds": None,
                "max_attempts": None,
            }
        ],
        "next_cursor": None,
    }
