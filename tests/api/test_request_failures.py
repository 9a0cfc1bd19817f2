"""A request that meets a bug in Fairlead: the client gets an id, under which the log has the details."""

import os
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.api.listening import refused_socket
from tests.api.requests import TASKS
from tests.api.serving import Gateway, serving
from tests.logs import event_of, json_records, records
from tests.servers import Server
from tests.store.namespace import claim_one, raw


@pytest.mark.parametrize("format", ["text", "json"])
async def test_a_fault_leaves_one_record_with_its_traceback_and_the_id_that_the_client_got(
    start_server: Callable[[str], Server], tmp_path: Path, format: str
) -> None:
    engine, namespace = start_server("valkey").url, f"faults-{os.getpid()}-{format}"
    env = {"FAIRLEAD_LOG__FORMAT": format}
    with serving(
        engine, namespace, tmp_path, env=env, failing=("request_failed", "socket_failed")
    ) as gateway:
        async with Store.connect(engine, namespace, gateway.settings) as store:
            task_id = (await store.submit_one(NewTask(task_type="echo"))).task_id
            # what no act of ours writes
            await raw(store).hset(store.connection.keys.prefix + f"task:{task_id}", "state", "upside down")
        async with httpx.AsyncClient(base_url=gateway.url, trust_env=False) as api:
            answer = await api.get(f"{TASKS}/{task_id}")
            other = await api.get(f"{TASKS}/{task_id}")
        refused, handshake = await refused_socket(gateway, f"/ws/{task_id}")
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (500, "error")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "Traceback" not in answer.text and "upside" not in answer.text
    assert problem["request_id"] != other.json()["request_id"]
    assert (refused, handshake["code"]) == (500, "error")
    assert handshake["request_id"] in "".join(
        one for one in records(gateway.log_text()) if event_of(one) == "socket_failed"
    )
    if format == "json":
        (known,) = [one for one in json_records(gateway.log_text()) if problem["request_id"] in str(one)]
        assert (known["event"], known["level"], known["method"]) == ("request_failed", "error", "GET")
        assert known["request_id"] == problem["request_id"]
        assert known["path"] == "/api/v1/tasks/{task_id}"
        assert known["traceback"].startswith("Traceback") and "upside down" in known["traceback"]
    else:
        (text,) = [one for one in records(gateway.log_text()) if problem["request_id"] in one]
        assert event_of(text) == "request_failed" and "Traceback" in text


async def test_a_failure_that_a_worker_reports_is_in_the_log_of_the_gateway(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    await store.workers.register("w")
    await store.submit_one(NewTask(task_type="echo", max_retries=0))
    task = await claim_one(store)
    error = {"message": "a-secret-message", "code": "OutOfPaint", "traceback": "a-secret-traceback"}
    one = {"task_id": task.task_id, "status": "failed", "fence": task.fence, "error": error}
    for _ in range(2):  # the second is a repetition, and answered as the first was
        await api.post("/internal/workers/w/result", json={"results": [one, one | {"fence": 1}]})
    written = [record for record in records(gateway.log_text()) if event_of(record) == "failure_reported"]
    assert f"task={task.task_id} fence={task.fence} worker=w code=OutOfPaint" in written[0]
    assert "retriable=True status=dead_letter" in written[0]
    assert not any("fence=1 " in record for record in written)  # it was refused
    assert "a-secret" not in gateway.log_text()
