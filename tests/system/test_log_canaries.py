"""Secrets pass through a server, services and workers that log at debug, and are in none of the logs."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from fairlead.model.key import SCOPES
from fairlead.settings import Settings
from fairlead.settings.processes import LogSettings
from fairlead.store.store import Store
from tests.api.listening import receive_one, socket
from tests.api.serving import Gateway, serving
from tests.logs import event_of, records
from tests.pipeline.servers import raw_service, says
from tests.servers import free_port, running
from tests.waiting import wait_until
from tests.warm import WarmProcess
from tests.workers import ROOT

PASSWORD = "canary-of-the-store"
PAYLOAD = "canary-of-the-payload"
QUERY = "canary-of-the-query"
HEADER = "canary-of-the-header"
ANSWER = "canary-of-the-answer"
NAMESPACE = "canaries"
TARGET = "tests.apps.failing:fl"
LOGGING = Settings(log=LogSettings(transitions=True))

SETTINGS = """
[log]
level = "debug"
format = "{format}"
transitions = true
access = true
[retry]
base_seconds = 0.001
max_seconds = 0.002
[services.painter]
url = "{url}&sig={query}"
max_attempts = 2
[priority_service]
url = "{url}&user={{user_id}}&sig={query}"
[pipelines]
one = ["painter"]
"""


@dataclass(frozen=True)
class Place:
    """A store that requires a password, and the settings of all its clients."""

    engine: str
    store_process: Any
    config: Path
    folder: Path


@pytest.fixture(params=["text", "json"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    port = free_port()
    failing = says({"error": ANSWER}, status="500 Internal Server Error", set_cookie=f"session={HEADER}")
    async with raw_service(failing) as service:
        config = tmp_path / "fairlead.toml"
        config.write_text(SETTINGS.format(format=request.param, url=service.url, query=QUERY))
        with running("valkey", "--port", str(port), "--bind", "127.0.0.1") as server:
            with redis.Redis.from_url(server.url) as client:
                client.config_set("requirepass", PASSWORD)
            engine = f"redis://:{PASSWORD}@127.0.0.1:{port}"
            yield Place(engine, server.process, config, tmp_path)


@contextlib.asynccontextmanager
async def worker(place: Place, name: str, *options: str, **env: str) -> AsyncIterator[Path]:
    """Its log."""
    log = place.folder / f"{name}.log"
    arguments = ("worker", TARGET, "--config", str(place.config), *options)
    env = {"HOME": str(place.folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **env}
    with log.open("wb") as out:
        process = WarmProcess(arguments, env, place.folder, out, out)
    try:
        await wait_until(lambda: "worker_started" in log.read_text(), 40, log.read_text())
        yield log
    finally:
        process.kill()  # without the store it would wait for its grace
        await process.wait()


async def use_everything(gateway: Gateway, key: str) -> None:
    """Tasks that succeed and fail, jobs whose service fails, and live updates; each with a canary in it."""
    headers = {"authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=gateway.url, headers=headers, trust_env=False, timeout=40) as api:
        ids = []
        for task_type in ("returns_its_parameters", "quotes_its_parameters", "fails_in_process") * 4:
            task = {
                "task_type": task_type,
                "parameters": {"prompt": PAYLOAD},
                "user_id": "ann",
                "max_retries": 1,
            }
            ids.append((await api.post("/api/v1/tasks", json=task)).json()["task_id"])
        job = {"feature_name": "one", "input_data": {"prompt": PAYLOAD}, "user_id": "ann"}
        job_id = (await api.post("/api/v1/jobs", json=job)).json()["job_id"]
        async with socket(gateway, f"/ws/{ids[0]}", headers) as opened:
            await receive_one(opened)
        await api.post("/api/v1/tasks", content=PAYLOAD.encode(), headers={"x-reason": PAYLOAD})
        for path in (*(f"/api/v1/tasks/{one}" for one in ids), f"/api/v1/jobs/{job_id}"):

            async def ended(path: str = path) -> bool:
                status = (await api.get(path)).json()["status"].lower()
                return status in ("completed", "failed", "dead_letter")

            await wait_until(ended, 60, path)


async def test_no_secret_is_in_any_log(place: Place) -> None:
    async with Store.connect(place.engine, NAMESPACE, LOGGING) as store:
        await store.open()
        key = (await store.api_keys.create("canary", SCOPES)).key_text
    where = ("--config", str(place.config))
    with serving(place.engine, NAMESPACE, place.folder, *where, "--grace", "0") as gateway:
        engine = ("--engine", place.engine, "--namespace", NAMESPACE)
        async with (
            worker(place, "beside", *engine) as beside,
            worker(place, "afar", "--url", gateway.url, FAIRLEAD_KEY=key) as afar,
        ):
            await use_everything(gateway, key)
            logs = {"server": gateway.log, "beside": beside, "afar": afar}
            place.store_process.kill()  # now all of them complain of the store
            for log in (beside, gateway.log):
                await wait_until(lambda log=log: "store_unavailable" in log.read_text(), 40, log.read_text())  # type: ignore[misc]
    secrets = (PASSWORD, PAYLOAD, QUERY, HEADER, ANSWER, key.split("_", 2)[2])
    for name, log in logs.items():
        text = log.read_text()
        assert [secret for secret in secrets if secret in text] == [], f"{name}: {text}"
    for event in ("task_failed", "transition", "request"):  # the first is of the service
        assert event in map(event_of, records(logs["server"].read_text()))
    both = logs["beside"].read_text() + logs["afar"].read_text()
    assert "a drop of blue" in both and both.count("task_failed") >= 8
