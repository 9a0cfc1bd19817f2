"""With `trust_clients = false` the priority service decides, whatever a client requests."""

from collections.abc import Iterator, Mapping

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.key_holders import Keys, bearer
from tests.api.priority_service import known_users, priority_service
from tests.api.requests import TASKS, good, submit


@pytest.fixture(scope="module")
def server_env() -> Iterator[Mapping[str, str]]:
    with priority_service(trust_clients="false", fallback="medium") as env:
        yield {
            **env,
            "FAIRLEAD_PIPELINES__STORY": '["draw"]',
            "FAIRLEAD_TASKS__DRAW": "{ max_retries = 1 }",
        }


@pytest.fixture(autouse=True)
def users() -> Iterator[None]:
    with known_users():
        yield


@pytest.fixture(autouse=True)
async def with_a_key(api: httpx.AsyncClient, keys: Keys) -> None:
    api.headers.update(bearer(await keys.make()))


OPTIONS = [
    ({"user_id": "bob", "priority": "high"}, "low"),
    ({"user_id": "ann", "priority": "low"}, "high"),
    ({"user_id": "nobody", "priority": "high"}, "medium"),  # unknown to the service
    ({"priority": "high"}, "medium"),  # to leave the user out is no way around it
    ({"priority": "low"}, "low"),
    ({}, "medium"),
]


@pytest.mark.parametrize(("options", "priority"), OPTIONS)
async def test_the_service_has_the_last_word(
    api: httpx.AsyncClient, options: dict[str, str], priority: str
) -> None:
    assert (await submit(api, **options))["priority"] == priority
    body = {"feature_name": "story", **options}
    assert good(await api.post("/api/v1/jobs", json=body), 201)["priority"] == priority


async def test_also_of_a_batch_and_by_the_simple_way(api: httpx.AsyncClient, store: Store) -> None:
    tasks = [{"task_type": "echo", **options} for options, _ in OPTIONS]
    answers = good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)["tasks"]
    given = [(await store.get(one["task_id"])).priority.word for one in answers]
    assert given == [priority for _, priority in OPTIONS]
    assert good(await api.get("/task", params={"priority": "high"}))["priority"] == "medium"


async def test_an_ignored_priority_does_not_make_a_repeated_submit_different(api: httpx.AsyncClient) -> None:
    body = {"task_type": "echo", "user_id": "bob", "idempotency_key": "k"}
    first = good(await api.post(TASKS, json={**body, "priority": "high"}), 201)
    assert good(await api.post(TASKS, json=body))["task_id"] == first["task_id"]


async def test_the_key_bounds_the_service_too(api: httpx.AsyncClient, keys: Keys) -> None:
    key = await keys.make(max_priority="medium")
    body = {"task_type": "echo", "user_id": "ann"}
    assert good(await api.post(TASKS, json=body, headers=bearer(key)), 201)["priority"] == "medium"
