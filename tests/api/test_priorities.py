"""Priority and weight of a user's tasks are those of the service, which may change its mind."""

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from tests.api.priority_service import MORE, PRIORITIES, known_users, priority_service
from tests.api.requests import TASKS, HttpWorker, good, refused, submit, task


@pytest.fixture(scope="module")
def server_env() -> Iterator[Mapping[str, str]]:
    with priority_service(cache_seconds="0", fallback="low") as env:
        yield {
            **env,
            "FAIRLEAD_FAIRNESS__PLANS": "{ free = 1, pro = 3 }",
            "FAIRLEAD_FAIRNESS__WEIGHTS": "{ bob = 100 }",
        }


@pytest.fixture(autouse=True)
def users() -> Iterator[None]:
    with known_users():
        yield


async def test_the_service_is_called_only_for_users(api: httpx.AsyncClient) -> None:
    for options, priority in (
        ({"user_id": "ann"}, "high"),
        ({"user_id": "bob"}, "low"),
        ({"user_id": "nobody"}, "low"),
        ({"user_id": "ann", "priority": "medium"}, "medium"),
        ({}, "medium"),
    ):
        answer = await submit(api, **options)
        assert (answer["priority"], answer["effective_priority"]) == (priority, priority)
        assert (await task(api, answer["task_id"]))["priority"] == priority


async def test_it_is_called_for_every_user_of_a_batch(api: httpx.AsyncClient) -> None:
    PRIORITIES.update({f"u{n}": ("high", "low")[n % 2] for n in range(120)})
    tasks = [{"task_type": "echo", "user_id": f"u{n}"} for n in range(120)]
    tasks += [{"task_type": "echo"}, {"task_type": "echo", "user_id": "ann", "priority": "low"}]
    answers = good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)["tasks"]
    kept = [(await task(api, one["task_id"]))["priority"] for one in answers]
    assert kept == ["high", "low"] * 60 + ["medium", "low"]


async def test_a_replay_is_one_although_the_service_changed_its_mind(api: httpx.AsyncClient) -> None:
    body = {"task_type": "echo", "user_id": "ann", "idempotency_key": "k"}
    first = good(await api.post(TASKS, json=body), 201)
    PRIORITIES["ann"] = "low"
    again = good(await api.post(TASKS, json=body))
    assert (again["task_id"], again["priority"]) == (first["task_id"], "high")
    refused(await api.post(TASKS, json={**body, "priority": "low"}), 409, "idempotency_conflict")


async def share(api: httpx.AsyncClient, user: str) -> int:
    """Of the first sixteen tasks, when ann and bob have many waiting."""
    worker = await HttpWorker.register(api, capacity=100)
    return [one["user_id"] for one in await worker.poll(16)].count(user)


@pytest.mark.parametrize(
    "ann", [{"weight": 3}, {"plan": "pro"}, {"plan": "free", "weight": 3}], ids=["weight", "plan", "both"]
)
@pytest.mark.parametrize(
    "priority", [{}, {"priority": "low"}], ids=["priority of the service", "own priority"]
)
async def test_the_service_returns_the_weight_of_a_user(
    api: httpx.AsyncClient, ann: dict[str, Any], priority: dict[str, str]
) -> None:
    PRIORITIES.update(ann="low", bob="low")
    MORE.update(ann=ann, bob={"plan": "gold"})
    tasks = [{"task_type": "echo", "user_id": user, **priority} for user in ("ann", "bob") for _ in range(20)]
    good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)
    assert await share(api, "ann") == pytest.approx(12, abs=1)


async def test_without_a_word_of_the_service_the_settings_say_it(api: httpx.AsyncClient) -> None:
    PRIORITIES.update(ann="low", bob="low")
    for user in ["ann"] * 20 + ["bob"] * 20:
        await submit(api, user_id=user)
    assert await share(api, "bob") >= 15


async def test_a_client_cannot_say_it(api: httpx.AsyncClient) -> None:
    refused(await api.post(TASKS, json={"task_type": "echo", "weight": 3}), 422, "invalid_input", "weight")
    refused(
        await api.post("/api/v1/jobs", json={"feature_name": "echo", "weight": 3}),
        422,
        "invalid_input",
        "weight",
    )
    batch = {"tasks": [{"task_type": "echo", "weight": 3}]}
    (answer,) = good(await api.post(f"{TASKS}/batch", json=batch), 201)["tasks"]
    assert [one["field"] for one in answer["error"]["errors"]] == ["weight"]


async def test_a_replay_is_one_although_the_weight_has_changed(api: httpx.AsyncClient) -> None:
    body = {"task_type": "echo", "user_id": "ann", "idempotency_key": "k"}
    MORE["ann"] = {"weight": 3}
    first = good(await api.post(TASKS, json=body), 201)
    MORE["ann"] = {"weight": 5}
    assert good(await api.post(TASKS, json=body))["task_id"] == first["task_id"]
