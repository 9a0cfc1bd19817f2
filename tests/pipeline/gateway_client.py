"""`fairlead server` with services: a real process, used over HTTP; the test provides the services."""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uuid_utils

from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.serving import Gateway, serving
from tests.waiting import wait_until

JOBS = "/api/v1/jobs"
ENDED = ("COMPLETED", "FAILED", "CANCELLED")


@contextlib.contextmanager
def held_port() -> Iterator[int]:
    """One that nobody else gets, also while no service of the test listens there: then it is refused."""
    with socket.socket() as holding:
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holding.bind(("127.0.0.1", 0))
        yield holding.getsockname()[1]


@contextlib.contextmanager
def gateway_with(engine: str, folder: Path, settings: str) -> Iterator[Gateway]:
    """On its own namespace, with these settings."""
    path = folder / "fairlead.toml"
    path.write_text(settings)
    with serving(engine, f"doors-{uuid_utils.uuid7()}", folder, "--config", str(path)) as gateway:
        yield gateway


@dataclass(frozen=True)
class GatewayClient:
    """What tests ask of a gateway, and the store behind it."""

    api: httpx.AsyncClient
    store: Store
    gateway: Gateway

    async def submit(self, feature: str, **options: Any) -> dict[str, Any]:
        body = {"feature_name": feature, "input_data": {"prompt": "a city"}, **options}
        answer = await self.api.post(JOBS, json=body)
        assert answer.status_code == 201, answer.text
        submitted: dict[str, Any] = answer.json()
        return submitted

    async def job(self, job_id: str) -> dict[str, Any]:
        answer = await self.api.get(f"{JOBS}/{job_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def ended(self, job_id: str) -> dict[str, Any]:
        async def has_ended() -> bool:
            return (await self.job(job_id))["status"] in ENDED

        await wait_until(has_ended, 40, "the job has ended")
        return await self.job(job_id)


@contextlib.asynccontextmanager
async def client_to(gateway: Gateway) -> AsyncIterator[GatewayClient]:
    """The doctor comes at the end."""
    # not opened: the settings of the gateway are kept
    store = Store.connect(gateway.engine, gateway.namespace)
    try:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=40, trust_env=False) as api:
            yield GatewayClient(api, store, gateway)
        breaches = await examine(store.connection)
        assert not breaches, breaches
    finally:
        await store.close()
