"""Calls of services that fail: one record each, with the service's host and status, and no credentials."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.logs import event_of, json_records, records
from tests.pipeline.gateway_client import JOBS, gateway_with, held_port
from tests.pipeline.servers import Reply, breaks_off, hangs, raw_service, says
from tests.servers import Server
from tests.waiting import wait_until

SETTINGS = """
[retry]
base_seconds = 0.001
max_seconds = 0.002
[log]
format = "{format}"
level = "debug"
[services.painter]
url = "http://127.0.0.1:{port}/v1/execute?sig=s3cr3t-sig"
timeout_seconds = {timeout}
max_attempts = 2
[pipelines]
one = ["painter"]
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


async def failed_job(url: str) -> str:
    """Its id, when it has failed."""
    job = {"user_id": "ann", "feature_name": "one", "input_data": {"prompt": "a-secret-prompt"}}
    headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    async with httpx.AsyncClient(base_url=url, trust_env=False) as api:
        job_id: str = (await api.post(JOBS, json=job, headers=headers)).json()["job_id"]

        async def failed() -> bool:
            return bool((await api.get(f"{JOBS}/{job_id}")).json()["status"] == "FAILED")

        await wait_until(failed, 40)
    return job_id


@pytest.mark.parametrize(
    ("reply", "facts", "timeout"),
    [
        (
            says({"error": "a-secret-answer"}, status="503 Service Unavailable"),
            {"code": "service_status_503", "status": 503, "retriable": True},
            30,
        ),
        (breaks_off, {"code": "service_connection_lost", "status": None, "retriable": True}, 30),
        (hangs, {"code": "service_timeout", "status": None, "retriable": True}, 0.2),
    ],
    ids=["503", "cut", "silent"],
)
async def test_each_failed_call_is_logged(
    start_server: Callable[[str], Server], tmp_path: Path, reply: Reply, facts: dict[str, Any], timeout: float
) -> None:
    with held_port() as port:
        async with raw_service(reply, port):
            text = SETTINGS.format(format="json", port=port, timeout=timeout)
            with gateway_with(start_server("valkey").url, tmp_path, text) as gateway:
                job_id = await failed_job(gateway.url)
    failed = [one for one in json_records(gateway.log_text()) if one.get("event") == "task_failed"]
    assert [(one["attempt"], one["level"]) for one in failed] == [(1, "warning"), (2, "error")]
    for one in failed:
        assert {name: one.get(name) for name in facts} == facts
        assert (one["type"], one["service"], one["host"]) == (
            "service:painter",
            "painter",
            f"127.0.0.1:{port}",
        )
        assert (one["job"], one["step"], one["trace"]) == (job_id, 0, TRACE)
        assert one["fence"] > 0 and "traceback" not in one
    assert "s3cr3t" not in gateway.log_text() and "a-secret" not in gateway.log_text()


async def test_a_service_that_is_down_is_logged_as_text(
    start_server: Callable[[str], Server], tmp_path: Path
) -> None:
    with (
        held_port() as port,
        gateway_with(
            start_server("valkey").url, tmp_path, SETTINGS.format(format="text", port=port, timeout=5)
        ) as gateway,
    ):
        await failed_job(gateway.url)
    first, second = [one for one in records(gateway.log_text()) if event_of(one) == "task_failed"]
    for one in (first, second):
        assert "code=service_unreachable" in one and f"host=127.0.0.1:{port}" in one and "cause=" in one
    assert "s3cr3t" not in gateway.log_text()
