"""What only operators may see: addresses of services and of the store, and errors of the store."""

from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.key_holders import Keys, bearer
from tests.api.requests import NO_TASK, TASKS, good, refused
from tests.api.serving import serving
from tests.faults.restarts import durable
from tests.waiting import wait_until

INSIDE = "127.0.0.1:1/inside"  # nobody listens there
JOBS = "/api/v1/jobs"


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {
        "FAIRLEAD_SERVICES__ENHANCER__URL": f"http://{INSIDE}",
        "FAIRLEAD_SERVICES__ENHANCER__MAX_ATTEMPTS": "1",
        "FAIRLEAD_PIPELINES__STORY": '["enhancer"]',
        "FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0",
    }


@pytest.fixture
async def tenant(keys: Keys) -> dict[str, str]:
    return bearer(await keys.make(tenant="acme"))


async def test_the_url_of_a_service_is_shown_to_operators_alone(
    api: httpx.AsyncClient, keys: Keys, tenant: dict[str, str]
) -> None:
    (shown,) = good(await api.get("/api/v1/services", headers=tenant))["services"]
    assert (shown["name"], shown["url"]) == ("enhancer", None)
    operator = bearer(await keys.make())
    (shown,) = good(await api.get("/api/v1/services", headers=operator))["services"]
    assert shown["url"] == f"http://{INSIDE}"


async def test_a_service_that_cannot_be_reached_is_not_located_in_the_error_of_its_job(
    api: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    job = good(await api.post(JOBS, json={"feature_name": "story"}, headers=tenant), 201)

    async def has_failed() -> bool:
        return bool(good(await api.get(f"{JOBS}/{job['job_id']}", headers=tenant))["status"] == "FAILED")

    await wait_until(has_failed)
    answer = await api.get(f"{JOBS}/{job['job_id']}", headers=tenant)
    assert answer.json()["error"]["code"] == "service_unreachable"
    task = await api.get(f"{TASKS}/{answer.json()['steps'][0]['task_id']}", headers=tenant)
    for text in (answer.text, task.text):
        assert "127.0.0.1" not in text and "inside" not in text and "attempts failed" not in text


async def test_while_the_store_is_down_its_address_is_hidden_from_strangers(tmp_path: Path) -> None:
    with durable() as server:
        await server.start()
        address = server.url.partition("://")[2]
        with serving(server.url, "default", tmp_path) as gateway:
            async with httpx.AsyncClient(base_url=gateway.url, timeout=20) as api:
                async with Store.connect(gateway.engine) as store:
                    tenant = bearer(await Keys(store).make(tenant="acme"))
                await wait_until(lambda: asks(api))
                server.kill()
                for path in ("/readyz", TASKS, f"{TASKS}/{NO_TASK}", "/api/v1/queue/stats"):
                    for headers in ({}, tenant):
                        answer = await api.get(path, headers=headers)
                        if answer.status_code != 401:
                            refused(answer, 503, "store_unavailable")
                        assert address not in answer.text and "Error" not in answer.text, answer.text
                await server.start()


async def asks(api: httpx.AsyncClient) -> bool:
    return (await api.get(TASKS)).status_code == 401


async def test_without_keys_everybody_sees_why_it_is_not_ready(tmp_path: Path) -> None:
    with durable() as server:
        await server.start()
        with serving(server.url, "default", tmp_path) as gateway:
            async with httpx.AsyncClient(base_url=gateway.url, timeout=20) as api:
                good(await api.get("/readyz"))
                server.kill()
                assert "Error" in refused(await api.get("/readyz"), 503, "store_unavailable")["detail"]
                await server.start()
