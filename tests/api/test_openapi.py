"""The OpenAPI page is true: requests made from it, good and bad ones, get the answers that it declares."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from fairlead.api.server import ROUTES
from fairlead.model.key import SCOPES
from fairlead.store.store import Store
from tests.api.requests import ENDLESS, TASKS, good
from tests.api.serving import Gateway
from tests.waiting import wait_until

SCHEMATHESIS = str(Path(sys.executable).with_name("schemathesis"))
# a list that is too long may make a body that is too large, and that is seen first
CONFIG = (
    "[checks.negative_data_rejection]\nexpected-statuses = [400, 401, 403, 404, 405, 409, 413, 415, 422]\n"
)
EXAMPLES = 4  # of each operation, besides those at the edges of its schema


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0"}  # it tries without a key as often as with one


async def test_every_operation_is_described(api: httpx.AsyncClient) -> None:
    page = good(await api.get("/openapi.json"))
    operations = [one for path in page["paths"].values() for one in path.values()]
    assert len(operations) == len(ROUTES) == len({one["operationId"] for one in operations})
    for operation in operations:
        assert operation["summary"]
        assert all(answer["description"] for answer in operation["responses"].values())
    scopes = {scope for one in operations for way in one.get("security", []) for scope in way["key"]}
    assert scopes == set(SCOPES)


@pytest.mark.timeout(240)
async def test_the_server_behaves_as_the_page_declares(
    api: httpx.AsyncClient, store: Store, gateway: Gateway, tmp_path: Path
) -> None:
    page = good(await api.get("/openapi.json"))
    for body in ("PollBody", "LeaseBody", "WaitBody"):  # it would wait as long as it may
        del page["components"]["schemas"][body]["properties"]["wait_seconds"]
    del page["paths"][f"{TASKS}/{{task_id}}/events"]  # it lasts as long as its task
    del page["paths"][ENDLESS]
    del page["paths"]["/api/v1/session"]  # 401 is the answer to a wrong key in its body
    (tmp_path / "openapi.json").write_text(json.dumps(page))
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    key = (await store.api_keys.create("schemathesis", SCOPES)).key_text

    async def asks() -> bool:
        return (await api.get(TASKS)).status_code == 401

    await wait_until(asks)
    process = await asyncio.create_subprocess_exec(
        *(
            SCHEMATHESIS,
            "run",
            "openapi.json",
            "--url",
            gateway.url,
            "--header",
            f"Authorization: Bearer {key}",
        ),
        *("--phases", "coverage,fuzzing", "--max-examples", str(EXAMPLES), "--continue-on-failure"),
        # what may not go together is not in a schema: limit and rate, a reserve within the capacity
        *("--checks", "all", "--exclude-checks", "positive_data_acceptance", "--request-timeout", "30"),
        *("--warnings", "off", "--no-color"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
